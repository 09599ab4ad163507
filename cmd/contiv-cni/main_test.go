package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary act as the plugins of a chain when it runs under their names.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "contiv-cni":
		main()
		os.Exit(0)
	case "recorder":
		if err := recorder(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for the plugins, each of which would otherwise take a second to exit
	goleak.VerifyTestMain(m)
}

// recorder is a chained plugin: it records its call and passes prevResult on.
func recorder() error {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	command := os.Getenv("CNI_COMMAND")
	conf := struct {
		Dir        string          `json:"dir"`
		PrevResult json.RawMessage `json:"prevResult"`
	}{}
	if err := json.Unmarshal(stdin, &conf); err != nil && command != "VERSION" {
		return err
	}
	if command == "VERSION" {
		fmt.Println(`{"cniVersion":"1.1.0","supportedVersions":["0.3.1","0.4.0","1.0.0","1.1.0"]}`)
		return nil
	}
	if command == "ADD" {
		fmt.Println(string(conf.PrevResult))
	}
	return os.WriteFile(filepath.Join(conf.Dir, command), stdin, 0o600)
}

// binDir returns a directory with the plugins under their names.
func binDir(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"contiv-cni", "recorder"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
