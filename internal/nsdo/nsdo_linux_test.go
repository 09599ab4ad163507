package nsdo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// unshared returns a new network namespace, opened.
func unshared(t *testing.T) *Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	var n *Namespace
	var err error
	onOwnThread(func() { // the thread ends
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			n, err = Current()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func current(t *testing.T) ID {
	t.Helper()
	n, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	return n.ID()
}

// TestFirstThreadStays checks that the first thread of the process, by which other programs find the namespace of the process, never enters another
// one, while many goroutines do.
func TestFirstThreadStays(t *testing.T) {
	ns := unshared(t)
	first := fmt.Sprintf("/proc/%d/ns/net", os.Getpid())
	want, err := os.Readlink(first)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var work sync.WaitGroup
	for i := range 30 {
		work.Go(func() {
			for range 20 {
				if err := ns.Do(func() error {
					if got, err := os.Readlink(first); err != nil || got != want {
						return fmt.Errorf("the process is in %s, want %s: %w", got, want, err)
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
			path := filepath.Join(dir, strconv.Itoa(i))
			if err := Create(path); err != nil {
				t.Error(err)
				return
			}
			if err := Remove(path); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if got, err := os.Readlink(first); err != nil || got != want {
		t.Errorf("the process is in %s, want %s: %v", got, want, err)
	}
}

func TestDo(t *testing.T) {
	host, ns := current(t), unshared(t)
	if ns.ID() == host {
		t.Fatal("the namespace is the test's own")
	}
	errFault := errors.New("fault")
	err := ns.Do(func() error {
		n, err := Current()
		if err != nil {
			return err
		}
		defer n.Close()
		if n.ID() != ns.ID() {
			t.Error("f does not run in the namespace")
		}
		return errFault
	})
	if !errors.Is(err, errFault) {
		t.Error(err)
	}
	if current(t) != host {
		t.Error("Do leaves its caller in the namespace")
	}
	if err := ns.Do(func() error { runtime.Goexit(); return nil }); err == nil {
		t.Error("no error from a function that does not return")
	}
	if current(t) != host {
		t.Error("Do leaves its caller in the namespace, after a function that did not return")
	}
	if err := (*Namespace)(nil).Do(func() error { return errFault }); !errors.Is(err, errFault) {
		t.Error(err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, file, filepath.Join(dir, "missing"), filepath.Join(file, "below"), "/dev/null", dir} {
		if n, err := Open(path); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v, %v, want ErrGone", path, n, err)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n, err := Open(threadNS)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if n.ID() != current(t) {
		t.Error("one namespace has two identities")
	}
	if own, err := Open(""); own != nil || err != nil {
		t.Error(own, err)
	}
}
