package clusterdb

import (
	"context"
	"log/slog"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newZap returns a logger for etcd's code that writes to log with lower levels: etcd's info messages become debug, and so do its warnings (a slow
// request, a client that disconnected). Errors keep their level until hush is set, because etcd reports its own orderly shutdown as errors.
func newZap(log *slog.Logger, hush *atomic.Bool) *zap.Logger {
	// A fatal error inside etcd must not end the agent: only the goroutine ends, and the connection is reported as lost.
	return zap.New(slogCore{log: log, hush: hush}, zap.WithFatalHook(zapcore.WriteThenGoexit))
}

// firstStart is the message that etcd logs, as an error, whenever it starts with an empty directory.
const firstStart = "failed to update storage version"

// slogCore is a zapcore.Core on top of slog.
type slogCore struct {
	log  *slog.Logger
	hush *atomic.Bool
}

func (c slogCore) level(l zapcore.Level) slog.Level {
	if l >= zapcore.ErrorLevel && !c.hush.Load() {
		return slog.LevelError
	}
	return slog.LevelDebug
}

// Enabled implements zapcore.Core.
func (c slogCore) Enabled(l zapcore.Level) bool {
	return c.log.Enabled(context.Background(), c.level(l)) // zap has no context
}

// With implements zapcore.Core.
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{log: c.log.With(attrs(fields)...), hush: c.hush}
}

// Check implements zapcore.Core.
func (c slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	level := c.level(entry.Level)
	if entry.Message == firstStart {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, "etcd: "+entry.Message, attrs(fields)...) // zap has no context
	return nil
}

// Sync implements zapcore.Core.
func (c slogCore) Sync() error { return nil }

func attrs(fields []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	out := make([]any, 0, len(enc.Fields))
	for _, f := range fields {
		if v, ok := enc.Fields[f.Key]; ok {
			out = append(out, slog.Any(f.Key, v))
		}
	}
	return out
}
