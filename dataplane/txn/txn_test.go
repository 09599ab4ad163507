package txn

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestKinds(t *testing.T) {
	for k, want := range map[Kind]string{
		Update: "update", UpstreamResync: "upstream-resync", FullResync: "full-resync", DownstreamResync: "downstream-resync",
		Kind(9): "Kind(9)",
	} {
		if k.String() != want {
			t.Errorf("%d is %q, want %q", int(k), k, want)
		}
	}
}

// A healing controller decides by Escalate: is there a failure that retrying single values does not repair?
func TestEscalate(t *testing.T) {
	retried := KeyError{Key: "a", Retriable: true, Err: errors.New("busy")}
	final := KeyError{Key: "b", Err: errors.New("no such table")}
	for name, c := range map[string]struct {
		err  Error
		want bool
	}{
		"all are retried":     {Error{Failed: []KeyError{retried, retried}}, false},
		"one pod only":        {Error{Failed: []KeyError{retried, {Key: "c", PodOnly: true, Err: errors.New("renamed")}}}, false},
		"one is final":        {Error{Failed: []KeyError{retried, final}}, true},
		"undoing failed":      {Error{Failed: []KeyError{retried}, Reverted: true, RevertErr: errors.New("gone")}, true},
		"undone, all retried": {Error{Failed: []KeyError{retried}, Reverted: true}, false},
	} {
		if got := c.err.Escalate(); got != c.want {
			t.Errorf("%s: Escalate() = %t", name, got)
		}
	}
}

// errors.Is and errors.As find the causes through all wrapping, including those of a failed revert.
func TestErrorFindsCauses(t *testing.T) {
	first, second, undo := errors.New("first"), errors.New("second"), errors.New("undo")
	err := fmt.Errorf("event 7: %w", &Error{
		Failed: []KeyError{{Key: "a", Err: fmt.Errorf("op: %w", first)}, {Key: "b", Err: second}}, RevertErr: undo,
	})
	for _, cause := range []error{first, second, undo} {
		if !errors.Is(err, cause) {
			t.Errorf("%q is not found in %v", cause, err)
		}
	}
	var te *Error
	var ke KeyError
	if !errors.As(err, &te) || len(te.Failed) != 2 || !errors.As(err, &ke) || ke.Key != "a" {
		t.Errorf("%v: %+v, %+v", err, te, ke)
	}
	if errors.Is(&Error{Failed: []KeyError{{Key: "a", Err: first}}}, undo) {
		t.Error("an error that is not there is found")
	}
}

// A transaction with very many failures must not fill the log.
func TestErrorIsShort(t *testing.T) {
	e := &Error{RevertErr: errors.New("VPP is gone")}
	for i := range 1000 {
		e.Failed = append(e.Failed, KeyError{Key: fmt.Sprintf("key-%d", i), Err: errors.New("refused")})
	}
	text := e.Error()
	for _, want := range []string{"key-0: refused", "key-2: refused", "and 997 more", "revert failed: VPP is gone"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "key-3") || len(text) > 200 {
		t.Errorf("too long: %q", text)
	}
}

// Operators read the history as text, and programs read it as JSON.
func TestRecordIsReadable(t *testing.T) {
	rec := &Record{
		SeqNum: 3, Kind: FullResync, Description: "start", Planned: []Op{{Action: Create, Key: "k"}, {Action: Delete, Key: "d"}},
		Executed: []Op{{Wave: 1, Action: Create, Key: "k", Err: "refused"}}, Failed: []KeyError{{Key: "k", Err: errors.New("refused")}},
	}
	text := rec.String()
	for _, want := range []string{"#3 full-resync: start (planned 2, executed 1, failed 1)", "  1 create   k  ! refused"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	data, err := json.Marshal(rec)
	if err != nil || !strings.Contains(string(data), `"Failed":["k: refused"]`) {
		t.Errorf("%s, %v", data, err)
	}
}
