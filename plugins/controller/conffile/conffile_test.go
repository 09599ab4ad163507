package conffile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/plugins/controller"
)

func TestLoad(t *testing.T) {
	c, err := Load([]byte("enableRetry: false\ndelayRetry: 2000000000\nperiodicHealingInterval: 90s\neventHistoryAgeLimit: 60\nmaxRetryAttempts:\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.EnableRetry || time.Duration(c.DelayRetry) != 2*time.Second || time.Duration(c.PeriodicHealingInterval) != 90*time.Second ||
		time.Duration(c.EventHistoryAgeLimit) != time.Hour || c.MaxRetryAttempts != controller.DefaultConfig().MaxRetryAttempts {
		t.Errorf("%+v", c)
	}
	for _, empty := range []string{"", "---\n", "# nothing", "{}", "null"} {
		if c, err := Load([]byte(empty)); err != nil || c != controller.DefaultConfig() {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct{ conf, want string }{
		{"delayRetri: 1s", "delayRetri: unknown option; did you mean delayRetry? (line 1)"},
		{"zzzzzzzzzz: 1", "zzzzzzzzzz: unknown option; there are delayAfterErrorHealing, "},
		{"a: 1\ndelayRetri: 1s", "delayRetri: unknown option"},
		{"delayRetry: soon", `delayRetry: "soon": not a duration`},
		{"delayRetry: -1s", "delayRetry: must be positive, is -1s"},
		{"delayRetry: 99999999999999999999", "delayRetry: "},
		{"eventHistoryAgeLimit: 9999999999999999", "eventHistoryAgeLimit: "},
		{"enableRetry: maybe", `enableRetry: "maybe": `},
		{"maxRetryAttempts: -1", "maxRetryAttempts: must not be negative, is -1"},
		{"maxRetryAttempts: [1]", "maxRetryAttempts: "},
		{"delayRetry: 1s\ndelayRetry: 2s", "delayRetry: is set twice, first in line 1"},
		{"[]", "must be options"},
		{"a: [", "not YAML"},
		{"enableRetry: true\n---\nenableRetry: false", "content after the first document"},
	} {
		if _, err := Load([]byte(tc.conf)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q\n  %v\n  want %s", tc.conf, err, tc.want)
		}
	}
}

func TestLoadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "controller.conf")
	for _, bad := range []string{path, "/dev/zero", t.TempDir()} {
		if _, err := LoadFile(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := os.WriteFile(path, []byte("x: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadFile(path); err == nil || !strings.Contains(err.Error(), path+" is not valid") {
		t.Error(err)
	}
}

// FuzzLoad checks that reading any file returns a valid configuration or an error.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{"", "a: &a [*a]", "delayRetry: 1s", "<<: {enableRetry: false}", "? [a]\n: b", "enableRetry: !!binary x", "- 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := Load(data); err == nil && c.Validate() != nil {
			t.Errorf("%q gives what is not valid: %v", data, c.Validate())
		}
	})
}

// TestReadme checks that the README contains every option.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range options() {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s is not in plugins/controller/README.md", name)
		}
	}
}
