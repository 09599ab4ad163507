package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEmptyAfterReboot: records of pods are removed after the boot that they belong to, and stay during it.
func TestEmptyAfterReboot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	pod := filepath.Join(dir, "pods", "a.json")
	boot := func(id string, stays bool) {
		t.Helper()
		if err := emptyAfterReboot(dir, id); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(pod); (err == nil) != stays {
			t.Errorf("boot %s: %v, want that the record stays: %v", id, err, stays)
		}
		if err := os.MkdirAll(filepath.Dir(pod), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(pod, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	boot("1", false)
	boot("1", true)
	boot("2", false)
	boot("2", true)
	if err := emptyAfterReboot(dir, " "); err == nil {
		t.Error("it is not known which boot this is, and the directory counts as of this one")
	}
	if _, err := os.Stat(pod); err != nil {
		t.Errorf("it is not known which boot this is, and records are gone: %v", err)
	}
	if id, err := bootID(); err != nil || id == "" {
		t.Errorf("boot %q, %v", id, err)
	}
}
