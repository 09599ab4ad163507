package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Config is the content of controller.conf; the names are contiv's. Read it over DefaultConfig, then call Validate (New
// does).
type Config struct {
	RetryConfig   `yaml:",inline"`
	HealingConfig `yaml:",inline"`
	HistoryConfig `yaml:",inline"`
	WatchConfig   `yaml:",inline"`

	// StartupResyncDeadline is how long after Start the node may take for its start-up resync before that is an error in
	// the log and the reason of not being ready.
	StartupResyncDeadline Duration `yaml:"startupResyncDeadline" json:"startupResyncDeadline" doc:"Time after which the log reports an error if the first resync has not ended."`
	// EventDeadline is how long one event may take until the loop counts as stuck: the node is not ready and not healthy then. Everything
	// that an event waits for has its own deadline, which is much shorter.
	EventDeadline Duration `yaml:"eventDeadline" json:"eventDeadline" doc:"Time after which the node is not ready and not healthy if an event has not been processed."`
	// EnableVerification makes the controller compare, after each event, the result of updates with the result of a resync. For tests and
	// debugging: every event costs a whole recomputation.
	EnableVerification bool `yaml:"enableVerification" json:"enableVerification" doc:"After each event, compare the result of the updates with a resync from scratch. Slow; for tests."`
	// EventQueueSize bounds the main queue and the queue of follow-ups, each.
	EventQueueSize int `yaml:"eventQueueSize" json:"eventQueueSize" doc:"Length of the main queue, and of the queue of follow-up events."`
	// ShutdownDeadline bounds Close. It is a part of what the agent as a whole has to stop.
	ShutdownDeadline Duration `yaml:"shutdownDeadline" json:"shutdownDeadline" doc:"Time for processing queued events when the agent stops, at most 5s. The whole stop takes at most 10s."`
}

// RetryConfig has the options for values that failed and are retried one by one. The controller itself uses only EnableRetry
// (txn.Txn.NoRetry); the code that applies transactions uses the rest.
type RetryConfig struct {
	EnableRetry bool `yaml:"enableRetry" json:"enableRetry" doc:"Retry values that failed."`
	// DelayRetry is the delay before the first retry.
	DelayRetry Duration `yaml:"delayRetry" json:"delayRetry" doc:"Delay before the first retry."`
	// MaxRetryAttempts is the number of retries, after which a resync follows; 0: no limit.
	MaxRetryAttempts int `yaml:"maxRetryAttempts" json:"maxRetryAttempts" doc:"Number of retries. A resync follows the last one. 0: no limit."`
	// EnableExpBackoffRetry doubles the delay with each retry, up to a minute.
	EnableExpBackoffRetry bool `yaml:"enableExpBackoffRetry" json:"enableExpBackoffRetry" doc:"Double the delay with each retry, up to a minute."`
}

// HealingConfig has the options of resyncs that the controller starts itself.
type HealingConfig struct {
	// EnablePeriodicHealing turns on a downstream resync every PeriodicHealingInterval.
	EnablePeriodicHealing   bool     `yaml:"enablePeriodicHealing" json:"enablePeriodicHealing" doc:"Run a downstream resync periodically."`
	PeriodicHealingInterval Duration `yaml:"periodicHealingInterval" json:"periodicHealingInterval" doc:"Time between two periodic resyncs."`
	// DelayAfterErrorHealing is the delay between an error and the full resync that heals it. It doubles with every healing that fails, up
	// to MaxHealingDelay.
	DelayAfterErrorHealing Duration `yaml:"delayAfterErrorHealing" json:"delayAfterErrorHealing" doc:"Time between an error and the resync that repairs it. It doubles with each resync that fails."`
	MaxHealingDelay        Duration `yaml:"maxHealingDelay" json:"maxHealingDelay" doc:"Upper limit of that time."`
}

// HistoryConfig has the options of the event history.
type HistoryConfig struct {
	RecordEventHistory bool `yaml:"recordEventHistory" json:"recordEventHistory" doc:"Keep a history of events for GET /controller/event-history."`
	// EventHistoryAgeLimit and PermanentlyRecordedInitPeriod are minutes when given as plain numbers, as in contiv.
	EventHistoryAgeLimit Minutes `yaml:"eventHistoryAgeLimit" json:"eventHistoryAgeLimit" doc:"Age at which records are removed. A plain number counts minutes."`
	// PermanentlyRecordedInitPeriod is the time after the start whose records are not removed because of their age.
	PermanentlyRecordedInitPeriod Minutes `yaml:"permanentlyRecordedInitPeriod" json:"permanentlyRecordedInitPeriod" doc:"Records of this time after the start are not removed. A plain number counts minutes."`
	// EventHistoryLimit bounds the number of records; up to half of them are of the initial period.
	EventHistoryLimit int `yaml:"eventHistoryLimit" json:"eventHistoryLimit" doc:"Number of records."`
}

// WatchConfig is for the watcher of the cluster's database; the controller does not use it.
type WatchConfig struct {
	// DelayLocalResync is how long the database may take to answer at start before the node's local copy is used.
	DelayLocalResync Duration `yaml:"delayLocalResync" json:"delayLocalResync" doc:"Time after which the agent starts from the local copy if etcd has not replied."`
	// RemoteDBProbingInterval is how often the connection to the database is checked.
	RemoteDBProbingInterval Duration `yaml:"remoteDBProbingInterval" json:"remoteDBProbingInterval" doc:"Time between two checks of the connection to etcd."`
}

// DefaultConfig has contiv's defaults, except for the number of retries: contiv has 3.
func DefaultConfig() Config {
	return Config{
		RetryConfig: RetryConfig{
			EnableRetry:           true,
			DelayRetry:            Duration(time.Second),
			MaxRetryAttempts:      10,
			EnableExpBackoffRetry: true,
		},
		HealingConfig: HealingConfig{
			PeriodicHealingInterval: Duration(time.Minute),
			DelayAfterErrorHealing:  Duration(5 * time.Second),
			MaxHealingDelay:         Duration(5 * time.Minute),
		},
		HistoryConfig: HistoryConfig{
			RecordEventHistory:            true,
			EventHistoryAgeLimit:          Minutes(24 * time.Hour),
			PermanentlyRecordedInitPeriod: Minutes(time.Hour),
			EventHistoryLimit:             2000,
		},
		WatchConfig: WatchConfig{
			DelayLocalResync:        Duration(5 * time.Second),
			RemoteDBProbingInterval: Duration(3 * time.Second),
		},
		StartupResyncDeadline: Duration(30 * time.Second),
		EventDeadline:         Duration(5 * time.Minute),
		EventQueueSize:        1000,
		ShutdownDeadline:      Duration(3 * time.Second),
	}
}

// maxShutdown leaves time for the rest of the agent's stop.
const maxShutdown = 5 * time.Second

// Validate reports every invalid field, by its name in the file.
func (c *Config) Validate() error {
	var errs []error
	positive := func(name string, d time.Duration) {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("%s: must be positive, is %s", name, d))
		}
	}
	positive("startupResyncDeadline", time.Duration(c.StartupResyncDeadline))
	positive("eventDeadline", time.Duration(c.EventDeadline))
	positive("shutdownDeadline", time.Duration(c.ShutdownDeadline))
	if d := time.Duration(c.ShutdownDeadline); d > maxShutdown {
		errs = append(errs, fmt.Errorf("shutdownDeadline: must be at most %s, is %s", maxShutdown, d))
	}
	positive("delayAfterErrorHealing", time.Duration(c.DelayAfterErrorHealing))
	positive("delayLocalResync", time.Duration(c.DelayLocalResync))
	positive("remoteDBProbingInterval", time.Duration(c.RemoteDBProbingInterval))
	if c.MaxHealingDelay < c.DelayAfterErrorHealing {
		errs = append(errs, fmt.Errorf("maxHealingDelay: %s is less than delayAfterErrorHealing (%s)",
			time.Duration(c.MaxHealingDelay), time.Duration(c.DelayAfterErrorHealing)))
	}
	if c.EnablePeriodicHealing {
		positive("periodicHealingInterval", time.Duration(c.PeriodicHealingInterval))
	}
	if c.EnableRetry {
		positive("delayRetry", time.Duration(c.DelayRetry))
		if c.MaxRetryAttempts < 0 {
			errs = append(errs, fmt.Errorf("maxRetryAttempts: must not be negative, is %d", c.MaxRetryAttempts))
		}
	}
	if c.RecordEventHistory {
		positive("eventHistoryAgeLimit", time.Duration(c.EventHistoryAgeLimit))
		if c.PermanentlyRecordedInitPeriod < 0 {
			errs = append(errs, fmt.Errorf("permanentlyRecordedInitPeriod: must not be negative, is %s",
				time.Duration(c.PermanentlyRecordedInitPeriod)))
		}
		if c.EventHistoryLimit < 2 {
			errs = append(errs, fmt.Errorf("eventHistoryLimit: must be at least 2, is %d", c.EventHistoryLimit))
		}
	}
	if c.EventQueueSize < 1 {
		errs = append(errs, fmt.Errorf("eventQueueSize: must be at least 1, is %d", c.EventQueueSize))
	}
	return errors.Join(errs...)
}

// Duration is a time.Duration that is read from "1m30s" or from a plain number of nanoseconds (as in contiv's files).
type Duration time.Duration

// Minutes is a time.Duration that is read from "1m30s" or from a plain number of minutes.
type Minutes time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	return parseDuration((*time.Duration)(d), time.Nanosecond, func(v any) error { return json.Unmarshal(b, v) })
}

// UnmarshalYAML implements the unmarshaler interface that all YAML libraries in use support.
func (d *Duration) UnmarshalYAML(unmarshal func(any) error) error {
	return parseDuration((*time.Duration)(d), time.Nanosecond, unmarshal)
}

// MarshalText prints the duration in the format in which it is read.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Minutes) UnmarshalJSON(b []byte) error {
	return parseDuration((*time.Duration)(m), time.Minute, func(v any) error { return json.Unmarshal(b, v) })
}

// UnmarshalYAML implements the unmarshaler interface that all YAML libraries in use support.
func (m *Minutes) UnmarshalYAML(unmarshal func(any) error) error {
	return parseDuration((*time.Duration)(m), time.Minute, unmarshal)
}

// MarshalText prints the duration in the format in which it is read.
func (m Minutes) MarshalText() ([]byte, error) { return []byte(time.Duration(m).String()), nil }

func parseDuration(to *time.Duration, unit time.Duration, unmarshal func(any) error) error {
	var n int64
	if err := unmarshal(&n); err == nil {
		d := time.Duration(n) * unit
		if d/unit != time.Duration(n) {
			return fmt.Errorf("duration %d × %s is too long", n, unit)
		}
		*to = d
		return nil
	}
	var text string
	if err := unmarshal(&text); err != nil {
		return fmt.Errorf("neither a number nor a duration such as \"1m30s\": %w", err)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("not a duration such as \"1m30s\": %w", err)
	}
	*to = d
	return nil
}
