package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kubectl puts a simulated kubectl into PATH that has the pods of two agents, the second of which is ready, and that runs commands for a pod
// on this machine. It writes its own arguments to the file that the function returns.
func kubectl(t *testing.T, pods string) (calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	script := `#!/bin/sh
echo "$@" >>` + calls + `
case "$*" in
*"get pods"*) cat <<'EOF'
` + pods + `
EOF
;;
*)	while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
esac
`
	netctl := "#!/bin/sh\necho \"netctl $*\"; cat; exit 3\n"
	for name, text := range map[string]string{"kubectl": script, "contiv-netctl": netctl} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}

const twoPods = `{"items": [
{"metadata": {"name": "agent-1"}, "spec": {"nodeName": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
{"metadata": {"name": "agent-2"}, "spec": {"nodeName": "n2"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`

// TestRun: arguments, standard input and exit status are passed through, to the pod of an agent that is ready or of the named node.
func TestRun(t *testing.T) {
	for _, tc := range []struct{ args, pod, flags, netctl string }{
		{"status", "agent-2", "", "status"},
		{"--on n1 ping a c -c 1", "agent-1", "", "ping a c -c 1"},
		{"--context=prod --kubeconfig k -n net trace a svc/b -o json", "agent-2", "--context=prod --kubeconfig=k ", "trace a svc/b -o json"},
	} {
		calls := kubectl(t, twoPods)
		var out, errs bytes.Buffer
		err := run(context.Background(), strings.Fields(tc.args), strings.NewReader("input"), &out, &errs)
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() != 3 {
			t.Errorf("%s: %v, want the exit status of contiv-netctl", tc.args, err)
		}
		if want := "netctl " + tc.netctl + "\ninput"; out.String() != want {
			t.Errorf("%s: %q, want %q", tc.args, out.String(), want)
		}
		data, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		if !strings.HasPrefix(lines[1], tc.flags+"exec -i -n ") || !strings.Contains(lines[1], " "+tc.pod+" -c agent -- ") {
			t.Errorf("%s: kubectl %s", tc.args, lines[1])
		}
	}
}

// TestMistakes: the error contains the fix.
func TestMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"--on n9 status": "agents run on n1, n2", "-o json status": "behind it", "--context": "needs a value", "-n net": "name a command",
	} {
		kubectl(t, twoPods)
		if err := run(context.Background(), strings.Fields(args), nil, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	kubectl(t, `{"items": []}`)
	if err := run(context.Background(), []string{"status"}, nil, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "by -n") {
		t.Errorf("no agents: %v", err)
	}
}

// TestLabel: the chart's agents have the label and the container that the plugin selects.
func TestLabel(t *testing.T) {
	text, err := os.ReadFile("../../k8s/contiv-vpp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	key, names, _ := strings.Cut(strings.TrimSuffix(agentLabel, ")"), " in (")
	for name := range strings.SplitSeq(names, ", ") {
		if !strings.Contains(string(text), key+": "+name+"\n") {
			t.Errorf("no pod of the manifests has %s: %s", key, name)
		}
	}
}
