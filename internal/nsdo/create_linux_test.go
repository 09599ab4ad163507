package nsdo

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestCreate: a created namespace has only lo, which is up; its name can be used once, and again after the namespace is removed.
func TestCreate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	host, path := current(t), filepath.Join(t.TempDir(), "ns")
	for range 2 {
		if err := Create(path); err != nil {
			t.Fatal(err)
		}
		if err := Create(path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("the name was given twice: %v", err)
		}
		ns, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		err = ns.Do(func() error {
			links, err := net.Interfaces()
			if err == nil && (len(links) != 1 || links[0].Name != "lo" || links[0].Flags&net.FlagUp == 0) {
				t.Errorf("interfaces %v, not lo alone, up", links)
			}
			return err
		})
		if ns.Close(); err != nil || ns.ID() == host || current(t) != host {
			t.Errorf("%v; the new namespace is the test's own: %v", err, ns.ID() == host)
		}
		if err := Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrGone) {
			t.Errorf("the removed namespace is there: %v", err)
		}
	}
	if err := Remove(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a namespace was removed twice: %v", err)
	}
}
