package clusterdb

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// brokenDisk is a local copy whose writes fail until it is repaired.
func brokenDisk(t *testing.T) (l *LocalCopy, repair func()) {
	t.Helper()
	l, err := OpenLocalCopy(filepath.Join(t.TempDir(), "state.db"), quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.Replace(map[string][]byte{"old": []byte("1"), "kept/a": []byte("1"), "kept/b": []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if err := l.db.Close(); err != nil {
		t.Fatal(err)
	}
	return l, func() {
		t.Helper()
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
	}
}

func expectSaved(t *testing.T, l *LocalCopy, want map[string]string) {
	t.Helper()
	values, err := l.Load()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for key, value := range values {
		got[key] = string(value)
	}
	if !maps.Equal(got, want) {
		t.Errorf("saved %v, want %v", got, want)
	}
}

// TestFailedSaveIsRepeated checks that a snapshot and changes that could not be written are written when the disk works again.
func TestFailedSaveIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, repair := brokenDisk(t)
		s := saver{local: l, log: quiet()}
		keep := func(key string) bool { return strings.HasPrefix(key, "kept/") }
		never := func(string) bool { return false }
		s.apply(map[string][]byte{"old": []byte("2"), "kept/a": []byte("2")}, never)
		s.replace(map[string][]byte{"x": []byte("1"), "y": []byte("1")}, keep)
		s.apply(map[string][]byte{"x": []byte("2"), "y": nil, "z": []byte("1")}, never)
		if s.due.IsZero() || s.due.After(time.Now().Add(maxSaveRetry)) {
			t.Fatalf("the next attempt is at %s", s.due)
		}
		ctx, cancel := s.deadline(t.Context())
		defer cancel()
		<-ctx.Done()
		s.flushDue() // fails again
		first := s.retry
		time.Sleep(s.retry)
		s.flushDue()
		if s.retry <= first {
			t.Errorf("pauses of %s and %s", first, s.retry)
		}
		repair()
		s.flushDue() // not yet
		if l, err := l.Load(); err != nil || len(l) != 3 {
			t.Fatalf("written before its time: %v, %v", l, err)
		}
		time.Sleep(s.retry)
		s.flushDue()
		expectSaved(t, l, map[string]string{"x": "2", "z": "1", "kept/a": "2", "kept/b": "1"})
		if !s.due.IsZero() || s.retry != 0 || s.pending != nil || s.snapshot != nil {
			t.Errorf("something is pending: %+v", s)
		}
	})
}

// TestFailedSnapshots checks that a newer snapshot replaces one that could not be written, except for the keys that the newer one keeps.
func TestFailedSnapshots(t *testing.T) {
	l, repair := brokenDisk(t)
	s := saver{local: l, log: quiet()}
	s.replace(map[string][]byte{"x": []byte("1"), "kept/a": []byte("2")}, func(string) bool { return false })
	s.replace(map[string][]byte{"x": []byte("2")}, func(key string) bool { return strings.HasPrefix(key, "kept/") })
	repair()
	s.flush()
	expectSaved(t, l, map[string]string{"x": "2", "kept/a": "2", "kept/b": "1"})
}
