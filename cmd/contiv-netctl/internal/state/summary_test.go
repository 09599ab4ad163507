package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/internal/diag"
)

// wellNode returns a node without a problem.
func wellNode() Node {
	return Node{
		Info: diag.AgentInfo{Dataplane: "vpp", Transport: "vxlan", Version: "0.1.0"}, Pods: 2,
		IPAM: IPAM{Subnets: []Usage{{"10.1.1.0/24", 2, 250}}}, Values: map[string]int{"CONFIGURED": 40},
	}
}

// screen returns the summary as text: a line for each check, then one for each problem.
func screen(nodes client.Nodes, answers ...client.Answer[Node]) (Summary, string) {
	rep := Summarize(nodes, answers, "1 service with 2 backends, on a")
	var b strings.Builder
	for _, l := range rep.Lines {
		fmt.Fprintf(&b, "%s %-10s %s\n", either(l.OK, "✓", "✗"), l.About, l.Text)
	}
	for _, p := range rep.Problems {
		fmt.Fprintf(&b, "✗ %s\n", p)
	}
	return rep, b.String()
}

func TestStatusOfAHealthyCluster(t *testing.T) {
	rep, text := screen(client.Nodes{}, client.Answer[Node]{Node: "a", Value: wellNode()},
		client.Answer[Node]{Node: "b", Value: wellNode()})
	for _, want := range []string{
		"✓ nodes      2 of 2 ready\n", "✓ dataplane  vpp on 2 nodes; transport vxlan\n", "✓ etcd       answers\n",
		"✓ addresses  4 of 504 used (0 %)\n", "✓ values     80 configured, 0 pending, 0 failed\n", "✓ pods       4 connected\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if len(rep.Problems) != 0 || strings.Contains(text, "✗") || strings.Count(text, "\n") > 20 {
		t.Errorf("problems %q in\n%s", rep.Problems, text)
	}
}

// TestStatusOfNodesThatWereNotQueried: agents that listen on a loopback address are the default, and not a problem.
func TestStatusOfNodesThatWereNotQueried(t *testing.T) {
	rep, text := screen(client.Nodes{}, client.Answer[Node]{Node: "a", Value: wellNode()},
		client.Answer[Node]{Node: "b", Err: fmt.Errorf("node b: %w", &client.LocalOnly{Address: "127.0.0.1:9999"})})
	if !strings.Contains(text, "✓ nodes      1 of 1 ready, 1 not queried\n") || strings.Contains(text, "✗") {
		t.Errorf("status is\n%s", text)
	}
	if len(rep.Problems) != 0 || !slices.Equal(rep.NotAsked, []string{"b"}) {
		t.Errorf("problems %q, not asked %q", rep.Problems, rep.NotAsked)
	}
}

// TestStatusShowsCauses: each fault is marked, and its cause is listed below with the node.
func TestStatusShowsCauses(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*client.Answer[Node])
		stale string
		line  string
		cause string
	}{
		"agent away": {func(a *client.Answer[Node]) {
			a.Err = &client.Unreachable{Agent: "b", Cause: errors.New("connection refused")}
		}, "", "✗ nodes      1 of 2 ready", "✗ b: no reply: connection refused"},
		"not ready": {func(a *client.Answer[Node]) { a.Value.Info.Problems = []string{"VPP is disconnected"} }, "",
			"✗ nodes      1 of 2 ready", "✗ b: not ready: VPP is disconnected"},
		"data path": {func(a *client.Answer[Node]) {
			a.Value.Info.Warnings = []diag.Warning{{Object: "c", Text: "does not respond"}}
		}, "",
			"✗ data path  1 problem", "✗ b: c: does not respond"},
		"full": {func(a *client.Answer[Node]) {
			a.Value.IPAM.Subnets[0].Used, a.Value.IPAM.Subnets[0].Free = 240, 12
		}, "",
			"✗ addresses", "✗ b: 240 of 252 addresses of 10.1.1.0/24 are used"},
		"failed": {func(a *client.Answer[Node]) { a.Value.Values["FAILED"] = 3 }, "", "✗ values     80 configured, 0 pending, 3 failed",
			"✗ b: 3 values failed"},
		"etcd":    {func(*client.Answer[Node]) {}, "etcd does not respond", "✗ etcd       etcd does not respond", "✗ etcd: etcd does not respond"},
		"version": {func(a *client.Answer[Node]) { a.Value.Info.Version = "0.2.0" }, "", "✗ version    0.1.0, 0.2.0", ""},
	} {
		b := client.Answer[Node]{Node: "b", Value: wellNode()}
		tc.spoil(&b)
		_, text := screen(client.Nodes{Stale: tc.stale}, client.Answer[Node]{Node: "a", Value: wellNode()}, b)
		if !strings.Contains(text, tc.line) || !strings.Contains(text, tc.cause) {
			t.Errorf("%s: no %q or no %q in\n%s", name, tc.line, tc.cause, text)
		}
	}
}
