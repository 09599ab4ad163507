package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
)

// TestTryTable: each node reports its own pods, both nodes of a connection report it, and long lists of peers are cut.
func TestTryTable(t *testing.T) {
	cut := triedConnection{Protocol: "TCP", Client: "10.0.0.1:4000", Server: "10.0.1.1:80", From: "a/x", To: "b/y"}
	out := triedConnection{Protocol: "UDP", Client: "10.0.0.1:4000", Server: "9.9.9.9:53", From: "a/x"}
	all := joinTried([]client.Answer[triedPolicy]{
		{Node: "n1", Value: triedPolicy{Policy: "b/p", Selects: []string{"b/y"}, Connections: []triedConnection{cut, out},
			Changes: []triedChange{{"b/y", "egress", []string{"all"}, []string{"a", "b", "c", "d", "e"}, "allowed", "denied"}}}},
		{Node: "n2", Err: errors.New("away")},
		{Node: "n3", Value: triedPolicy{Policy: "b/p", Selects: []string{"a/x"}, Connections: []triedConnection{cut}, Unknown: "no plugin",
			Changes: []triedChange{{"a/x", "ingress", []string{"tcp 80", "udp"}, []string{"b/y"}, "denied", "allowed"}}}},
	})
	if len(all.Connections) != 2 || !reflect.DeepEqual(all.Selects, []string{"a/x", "b/y"}) || all.Unknown != "node n3: no plugin" {
		t.Errorf("got %+v", all)
	}
	want := [][]string{
		{"a/x", "ingress", "tcp 80, udp", "b/y", "denied -> allowed"}, {"b/y", "egress", "all", "a, b, c, d and 1 more", "allowed -> denied"},
		{"b/y", "ingress", "TCP 10.0.1.1:80", "a/x (10.0.0.1:4000)", "open connection ends"},
		{"a/x", "egress", "UDP 10.0.0.1:4000", "9.9.9.9:53", "open connection ends"},
	}
	if got := triedTable(all).Rows; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	var notes strings.Builder
	triedNotes(&notes, all)
	if !strings.Contains(notes.String(), "b/p selects 2 pods; 2 changes, 2 open connections end. Nothing was applied.") {
		t.Error(notes.String())
	}
}

func TestReadPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte("kind: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{file: "kind: x", "-": "kind: y"} {
		if got, err := readPolicy(strings.NewReader("kind: y"), name); got != want || err != nil {
			t.Errorf("%s: %q, error %v", name, got, err)
		}
	}
	for what, in := range map[string]string{file + "x": "", "-": strings.Repeat("x", maxPolicy+1)} {
		if _, err := readPolicy(strings.NewReader(in), what); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
