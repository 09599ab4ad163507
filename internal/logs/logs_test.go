package logs

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCauseFirst checks that, for any order of the attributes, the cause comes first, and the part that logs comes
// last.
func TestCauseFirst(t *testing.T) {
	var b bytes.Buffer
	log := New(&b, slog.LevelInfo, nil).With("plugin", "podmanager")
	log.Warn("pod not added", "pod", "default/a", "error", errors.New("no free address"), "took", 3)
	if want := `level=WARN msg="pod not added" error="no free address" pod=default/a took=3 plugin=podmanager` + "\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("got %q, want %q at its end", b.String(), want)
	}
	b.Reset()
	log.Debug("not at this level")
	log.WithGroup("vpp").With("a", 1).Info("grouped", "b", 2)
	if !strings.HasSuffix(b.String(), "msg=grouped vpp.b=2 plugin=podmanager vpp.a=1\n") || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("got %q", b.String())
	}
}

// TestLinesAreBounded checks that no line is longer than maxLine, and that no character is cut.
func TestLinesAreBounded(t *testing.T) {
	var b bytes.Buffer
	log := New(&b, slog.LevelInfo, nil)
	long := strings.Repeat("ä€", 4000)
	log.Error("a\nb", "error", errors.New(long))
	log.Error(long, "x", long, "y", long, "z", long)
	for line := range strings.Lines(b.String()) {
		if len(line) > maxLine+1 || !utf8.ValidString(line) || !strings.HasSuffix(line, "\n") {
			t.Errorf("%d bytes: %.80q…%q", len(line), line, line[len(line)-20:])
		}
	}
	if strings.Count(b.String(), "\n") != 2 {
		t.Errorf("%d lines of 2 records", strings.Count(b.String(), "\n"))
	}
}

// TestRing checks that the newest lines are returned in their order, as text and by number.
func TestRing(t *testing.T) {
	r := NewRing(3)
	log := New(new(bytes.Buffer), slog.LevelInfo, r)
	if got := r.Last(0); len(got) != 0 {
		t.Errorf("an empty ring has %q", got)
	}
	for _, text := range []string{"one", "two", "three", "four"} {
		log.Info(text)
	}
	var got []string
	for _, line := range r.Last(0) {
		_, msg, _ := strings.Cut(strings.TrimSpace(line), "msg=")
		got = append(got, msg)
	}
	if strings.Join(got, " ") != "two three four" {
		t.Errorf("the ring has %q", got)
	}
	for query, want := range map[string]struct {
		status int
		text   string
	}{"": {200, "msg=two"}, "?last=1": {200, "msg=four"}, "?last=-1": {400, "last"}, "?last=x": {400, "last"}} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", Path+query, nil))
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("GET %s%s: %d %q", Path, query, w.Code, w.Body.String())
		}
	}
}
