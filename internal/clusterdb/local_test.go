package clusterdb

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUnreachableLocalCopy checks that a file that the system does not let us open, for lack of file descriptors or because
// of a broken disk, does not count as damaged: removing it would cost the node its identity.
func TestUnreachableLocalCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	l, err := OpenLocalCopy(path, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SaveOwn("node-identity", []byte("me")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// A link to itself: opening it fails with ELOOP.
	if err := os.Rename(path, path+".kept"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(path), path); err != nil {
		t.Fatal(err)
	}
	if l, err := OpenLocalCopy(path, quiet()); err == nil {
		t.Errorf("replaced by an empty one")
		_ = l.Close()
	}
	if err := os.Rename(path+".kept", path); err != nil {
		t.Fatal(err)
	}
	if l, err = OpenLocalCopy(path, quiet()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if own, err := l.LoadOwn("node-identity"); err != nil || string(own) != "me" {
		t.Errorf("the node's identity is %q, %v", own, err)
	}
}
