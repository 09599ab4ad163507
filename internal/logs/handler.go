package logs

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"unicode/utf8"
)

const (
	// maxLine bounds a line, without the newline.
	maxLine = 1000
	// maxValue bounds the value of an attribute.
	maxValue = 400
)

// New returns a logger that writes to w, and to the ring if there is one.
func New(w io.Writer, level slog.Leveler, ring *Ring) *slog.Logger {
	if ring != nil {
		w = io.MultiWriter(ring, w)
	}
	text := slog.NewTextHandler(lines{w}, &slog.HandlerOptions{Level: level, ReplaceAttr: cut})
	return slog.New(&handler{text: text})
}

// handler orders the attributes of a record: the cause, then the details, then the part of the program that logs.
type handler struct {
	text  slog.Handler
	attrs []slog.Attr // attributes of the logger
	group string      // prefix of the attributes that follow, with a dot at its end
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.text.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	var rest []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		if h.group == "" && isCause(a.Key) {
			out.AddAttrs(a)
			return true
		}
		a.Key = h.group + a.Key
		rest = append(rest, a)
		return true
	})
	out.AddAttrs(rest...)
	out.AddAttrs(h.attrs...)
	return h.text.Handle(ctx, out)
}

// isCause reports whether the attribute gives the cause of an event.
func isCause(key string) bool { return key == "error" || key == "reason" || key == "cause" }

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		a.Key = h.group + a.Key
		next.attrs = append(next.attrs, a)
	}
	return &next
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.group += name + "."
	return &next
}

// cut shortens long values.
func cut(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.LevelKey || a.Key == slog.TimeKey {
		return a
	}
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		if text := a.Value.String(); len(text) > maxValue {
			a.Value = slog.StringValue(Short(text, maxValue))
		}
	}
	return a
}

// Short returns text, or its beginning with an ellipsis, in at most limit bytes.
func Short(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	n := limit - len(ellipsis)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + ellipsis
}

// lines bounds the length of lines; a text handler writes one line with each call.
type lines struct{ w io.Writer }

// Write implements io.Writer.
func (l lines) Write(line []byte) (int, error) {
	out := line
	if len(line) > maxLine+1 {
		out = []byte(Short(string(line), maxLine) + "\n")
	}
	if _, err := l.w.Write(out); err != nil {
		return 0, err
	}
	return len(line), nil
}
