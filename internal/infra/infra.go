package infra

import "log/slog"

// PluginDeps is embedded into the Deps of a plugin.
type PluginDeps struct {
	// PluginName is the plugin's name in logs and histories.
	PluginName string
	// Log is the plugin's logger; never nil in a running agent.
	Log *slog.Logger
}

// SetName sets the plugin's name.
func (d *PluginDeps) SetName(name string) { d.PluginName = name }

// String returns the plugin's name.
func (d *PluginDeps) String() string { return d.PluginName }

// Logger returns Log, or a logger that discards everything when Log is nil, so that a partly wired plugin in a
// test can log.
func (d *PluginDeps) Logger() *slog.Logger {
	if d.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return d.Log
}
