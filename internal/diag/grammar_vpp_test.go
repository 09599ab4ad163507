package diag

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// vppOfFuzzing is the VPP for all inputs of a process.
type vppOfFuzzing struct {
	once sync.Once
	vpp  *vpptest.VPP
	err  error
}

func (v *vppOfFuzzing) get() (*vpptest.VPP, error) {
	v.once.Do(func() { v.vpp, v.err = vpptest.Launch(context.Background(), vpptest.Options{}) })
	return v.vpp, v.err
}

// stateOf returns the state that a read-only command must not change. The loopback exists so that a command can
// change it.
func stateOf(v *vpptest.VPP) (string, error) {
	var all strings.Builder
	for _, command := range []string{"show interface address", "show mode", "show ip table", "show bridge-domain", "show nat44 summary",
		"show plugins", "show logging configuration", "show ip neighbors", "show acl-plugin acl"} {
		out, err := v.CLI(command)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "%s:\n%s\n", command, out)
	}
	return all.String(), nil
}

// commandOf makes a command from bytes: a command of the grammar with other words, or with any text after it.
func commandOf(data []byte) string {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0])
		data = data[1:]
		return b
	}
	patterns := readCommands()
	fixed, free, _ := strings.Cut(patterns[next()%len(patterns)], "|")
	words := strings.Fields(fixed)
	more := append(strings.Fields(free), "create", "loopback", "interface", "set", "delete", "del", "loop0", "state", "up", "restart",
		"clear", "exec", "/dev/null", "1", "10.1.2.0/24", "ip", "table", "add", "77", "show", "verbose")
	for range next() % 8 {
		words = append(words, more[next()%len(more)])
	}
	for i, w := range words {
		switch w {
		case argNumber:
			words[i] = fmt.Sprint(next())
		case argPrefix:
			words[i] = []string{"10.1.2.0/24", "::/0", "10.0.0.1", "fd00::1"}[next()%4]
		case argName:
			words[i] = []string{"loop0", "local0", "x9", "up1"}[next()%4]
		}
	}
	return strings.Join(words, " ")
}

// FuzzGrammarOnVPP checks that a command that is accepted as read-only neither changes a real VPP nor ends it.
func FuzzGrammarOnVPP(f *testing.F) {
	if _, ok := vpptest.Find(); !ok {
		f.Skip(vpptest.ErrNoVPP)
	}
	v := &vppOfFuzzing{}
	f.Cleanup(func() {
		if v.vpp != nil {
			v.vpp.Stop()
		}
	})
	for i := range readCommands() {
		f.Add([]byte{byte(i)})
		f.Add([]byte{byte(i), 2, 0, 1, 1, 2})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		command := commandOf(data)
		if readOnly(command) != nil {
			return
		}
		vpp, err := v.get()
		if err != nil {
			t.Skip(err)
		}
		before, err := stateOf(vpp)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := vpp.CLI(command)
		if !vpp.Running() {
			t.Fatalf("%q ended VPP", command)
		}
		after, err := stateOf(vpp)
		if err != nil || before != after {
			t.Fatalf("%q changed VPP, %v:\n%s\nfrom\n%s\nto\n%s", command, err, out, before, after)
		}
	})
}
