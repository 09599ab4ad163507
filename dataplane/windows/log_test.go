package windataplane

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// logCounter counts log messages.
type logCounter struct{ n atomic.Int32 }

func (l *logCounter) Enabled(context.Context, slog.Level) bool  { return true }
func (l *logCounter) Handle(context.Context, slog.Record) error { l.n.Add(1); return nil }
func (l *logCounter) WithAttrs([]slog.Attr) slog.Handler        { return l }
func (l *logCounter) WithGroup(string) slog.Handler             { return l }
