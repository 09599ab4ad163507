package controller

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const contivFile = `
enableRetry: false
delayRetry: 2000000000
maxRetryAttempts: 5
enableExpBackoffRetry: false
delayLocalResync: 6s
startupResyncDeadline: 1m
enablePeriodicHealing: true
periodicHealingInterval: 30000000000
delayAfterErrorHealing: 7s
remoteDBProbingInterval: 4s
recordEventHistory: true
eventHistoryAgeLimit: 60
permanentlyRecordedInitPeriod: 10m
enableVerification: true
`

func TestConfigReadsContivsFiles(t *testing.T) {
	want := DefaultConfig()
	want.RetryConfig = RetryConfig{DelayRetry: Duration(2 * time.Second), MaxRetryAttempts: 5}
	want.EnablePeriodicHealing = true
	want.PeriodicHealingInterval = Duration(30 * time.Second)
	want.DelayAfterErrorHealing = Duration(7 * time.Second)
	want.EventHistoryAgeLimit = Minutes(time.Hour)
	want.PermanentlyRecordedInitPeriod = Minutes(10 * time.Minute)
	want.DelayLocalResync = Duration(6 * time.Second)
	want.RemoteDBProbingInterval = Duration(4 * time.Second)
	want.StartupResyncDeadline = Duration(time.Minute)
	want.EnableVerification = true

	got := DefaultConfig()
	if err := yaml.Unmarshal([]byte(contivFile), &got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("YAML: got %+v\nwant %+v", got, want)
	}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got = DefaultConfig()
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("JSON round trip: got %+v\nwant %+v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestDefaultConfigIsValid(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigValidateNamesEveryField(t *testing.T) {
	cfg := Config{}
	cfg.EnableRetry, cfg.MaxRetryAttempts = true, -1
	cfg.EnablePeriodicHealing = true
	cfg.RecordEventHistory, cfg.PermanentlyRecordedInitPeriod = true, -1
	cfg.MaxHealingDelay = -1
	err := cfg.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	// An error must name each field, except switches, as in the file.
	typ := reflect.TypeFor[Config]()
	for _, f := range reflect.VisibleFields(typ) {
		name := f.Tag.Get("yaml")
		if f.Anonymous || f.Type.Kind() == reflect.Bool {
			continue
		}
		if name == "" || name != f.Tag.Get("json") {
			t.Errorf("field %s: yaml and json names must be the same", f.Name)
		}
		if !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}

func TestConfigBadDurations(t *testing.T) {
	for _, text := range []string{`"soon"`, `"10"`, `true`, `9223372036854775807`, `{}`} {
		var m struct{ M Minutes }
		if err := json.Unmarshal([]byte(`{"M":`+text+`}`), &m); err == nil {
			t.Errorf("%s was read as %s", text, time.Duration(m.M))
		}
		if err := yaml.Unmarshal([]byte(`m: `+text), &m); err == nil {
			t.Errorf("YAML %s was read as %s", text, time.Duration(m.M))
		}
	}
}
