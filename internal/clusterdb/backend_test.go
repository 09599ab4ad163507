package clusterdb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedEtcd damages each page of the database, and checks that the agent does not end by a panic of etcd but reports the fix. If
// the damage does not matter, etcd starts.
func TestDamagedEtcd(t *testing.T) {
	dir := t.TempDir()
	db := openEmbedded(t, dir)
	for i := range 40 {
		value := []byte(strings.Repeat(fmt.Sprint(i%10), 1000))
		if ok, err := db.PutIfNotExists(fmt.Sprintf("/k%d", i), value); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "etcd", "member", "snap", "db")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page, reported := os.Getpagesize(), 0
	for from := 0; from < len(good); from += page {
		if isZero(good[from : from+page]) {
			continue // the page was never used
		}
		bad := append([]byte{}, good...)
		for i := from; i < from+page; i++ {
			bad[i] = 0xa5
		}
		if damaged(t, path, bad) {
			reported++
		}
	}
	if !damaged(t, path, good[:5*page]) {
		t.Error("a file that has lost its end was taken for a good one")
	}
	if reported < 3 {
		t.Errorf("damage was found %d times only", reported)
	}
	if damaged(t, path, good) {
		t.Error("the undamaged file was refused")
	}
}

// damaged reports whether the check before the start of etcd rejects the file. The error names the file.
func damaged(t *testing.T, path string, data []byte) bool {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	err := checkBackend(filepath.Join(filepath.Dir(path), "..", ".."))
	if err != nil && !strings.Contains(err.Error(), "snap/db") {
		t.Errorf("the error does not name the file: %v", err)
	}
	return err != nil
}

// TestDamagedEtcdSaysWhatToDo checks that the error of the start describes the fix.
func TestDamagedEtcdSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	db := openEmbedded(t, dir)
	put(t, db, 1, "a")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "etcd", "member", "snap", "db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * os.Getpagesize(); i < len(data); i++ {
		data[i] = 0xa5
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := testConf()
	conf.Embedded.DataDir = dir
	if _, err := Open(t.Context(), conf, quiet()); err == nil || !strings.Contains(err.Error(), "remove the directory") ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}

func isZero(data []byte) bool { return len(strings.Trim(string(data), "\x00")) == 0 }
