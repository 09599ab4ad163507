package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// printed returns what the command prints, or its error.
func printed(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"--print", "--vpp=/bin/sh", "--hugepages=off", "--node-name=a"}, args...))
	err := cmd.Execute()
	return out.String(), err
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStartupConf: VPP gets the NIC of this node's section of contiv.conf, but not that of another node; the extra configuration is included,
// and may be missing.
func TestStartupConf(t *testing.T) {
	conf := file(t, `
nodeConfig:
- {nodeName: a, mainVPPInterface: {interfaceName: GigabitEthernet0/8/0}}
- {nodeName: b, mainVPPInterface: {interfaceName: GigabitEthernet0/9/0}}
`)
	text, err := printed(t, "--config="+conf, "--extra-config="+file(t, "cnat { session-max-age 5 }"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"dev 0000:00:08.0", "cnat { session-max-age 5 }", "socket-name /run/vpp/api.sock"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "0000:00:09.0") {
		t.Errorf("the other node's NIC in\n%s", text)
	}
	if text, err = printed(t, "--extra-config=/nowhere"); err != nil || !strings.Contains(text, "plugin default { disable }") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestUnknownVariable: a variable that is not read is rejected. Otherwise a node whose name is in such a variable would get another node's
// NIC, or none.
func TestUnknownVariable(t *testing.T) {
	t.Setenv("CONTIV_NODENAME", "a")
	if _, err := printed(t); err == nil || !strings.Contains(err.Error(), "did you mean CONTIV_NODE_NAME?") {
		t.Errorf("error %v", err)
	}
}

// TestFaults: faults are reported before VPP is started.
func TestFaults(t *testing.T) {
	for _, tc := range []struct{ flag, want string }{
		{"--vpp=/nowhere/vpp", "--vpp"}, {"--preload=/nowhere.so", "--preload"}, {"--config=/nowhere", "contiv.conf"},
		{"--config=" + file(t, "mtuSise: 1"), "mtuSise"}, {"--heap-mb=1", "--heap-mb 1"},
		{"--extra-config=" + file(t, "nat44 {"), "unbalanced braces"}, {"--hugepages=maybe", "maybe"},
	} {
		if _, err := printed(t, tc.flag); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.flag, err)
		}
	}
}
