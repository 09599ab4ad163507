package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/nodesync"
)

// agentAt serves an agent's paths on a socket.
func agentAt(t *testing.T, mux http.Handler) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "rest.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(mux)
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	return socket
}

// TestLookForANode: for a node that does not respond, the output lists what was tried: its IPv4 addresses or, if it has none, the others.
func TestLookForANode(t *testing.T) {
	var queried []netip.Addr
	mux := http.NewServeMux()
	answer := func(path string, body func(r *http.Request) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(body(r)) })
	}
	answer(diag.AgentPath, func(*http.Request) any { return diag.AgentInfo{Node: "n1"} })
	answer(client.NodesPath, func(*http.Request) any {
		return client.Nodes{Nodes: []nodesync.NodeReport{
			{Name: "six", State: "claimed", MgmtIPs: []string{"fd18::2"}, VPPIPs: []string{"fd19::2/64"}},
			{Name: "both", State: "claimed", MgmtIPs: []string{"fd18::3", "198.18.0.3"}}, {Name: "none", State: "claimed"},
		}}
	})
	answer(diag.ProbePath, func(r *http.Request) any {
		var req diag.ProbeRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		queried = append(queried, req.To)
		return diag.ProbeResult{Sent: 1}
	})
	socket := agentAt(t, mux)
	c, err := client.Open(context.Background(), client.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string][]string{"six": {"fd18::2", "fd19::2"}, "both": {"198.18.0.3"}, "none": nil} {
		queried = nil
		text := lookFor(context.Background(), c, node)
		var got []string
		for _, a := range queried {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) || (text == "") != (want == nil) || !strings.Contains(text, strings.Join(want, " and ")) {
			t.Errorf("%s: %q was asked, said is %q; want %q", node, got, text, want)
		}
	}
}

// TestLocalAgents: with the default configuration agents answer their own node only. Commands that show all nodes show that node, name the
// others, and succeed; a command that must act on all nodes fails.
func TestLocalAgents(t *testing.T) {
	mux := http.NewServeMux()
	answer := func(path string, value any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(value) })
	}
	answer(diag.AgentPath, diag.AgentInfo{Node: "n1", Dataplane: "vpp", Access: diag.Access{Address: "127.0.0.1:9999"}})
	answer(client.NodesPath, client.Nodes{Nodes: []nodesync.NodeReport{
		{Name: "n1", ID: 1, State: "claimed", VPPIPs: []string{"192.0.2.1/24"}}, {Name: "n2", ID: 2, State: "claimed", VPPIPs: []string{"192.0.2.2/24"}},
	}})
	answer(podsPath, []podRow{})
	answer(servicesPath, []serviceRow{})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("null")) })
	socket := agentAt(t, mux)

	const note = "1 node not queried (n2): agents listen on 127.0.0.1:9999 only; to query them from other nodes, set agent.remote.enabled=true"
	for _, tc := range []struct {
		args []string
		out  string
		fail bool
	}{
		{args: []string{"check"}, out: "1 node, "},
		{args: []string{"status"}, out: "1 of 1 ready, 1 not queried"},
		{args: []string{"pods"}},
		{args: []string{"ipam"}},
		{args: []string{"resync", "n1", "n2"}, out: "node n1 is compared and repaired", fail: true},
		{args: []string{"resync", "n2"}, fail: true},
		{args: []string{"nat", "n2"}, fail: true},
	} {
		var stdout, stderr strings.Builder
		cmd := newCommand()
		cmd.SetOut(&stdout)
		cmd.SetErr(&stderr)
		cmd.SetArgs(append([]string{"--socket", socket}, tc.args...))
		err := cmd.ExecuteContext(context.Background())
		if (err != nil) != tc.fail {
			t.Errorf("%v: error %v, failure expected: %t\n%s%s", tc.args, err, tc.fail, &stdout, &stderr)
		}
		if !strings.Contains(stdout.String(), tc.out) || !strings.Contains(stderr.String(), note) {
			t.Errorf("%v prints\n%s%s\nexpected %q, and on standard error %q", tc.args, &stdout, &stderr, tc.out, note)
		}
	}
}

// TestConnectivityWithLocalAgents: a test that reaches no other node reports the setting, not a fault of the nodes.
func TestConnectivityWithLocalAgents(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc(diag.AgentPath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(diag.AgentInfo{Node: "n1", Access: diag.Access{Address: "127.0.0.1:9999"}})
	})
	mux.HandleFunc(client.NodesPath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(client.Nodes{Nodes: []nodesync.NodeReport{
			{Name: "n1", State: "claimed"}, {Name: "n2", State: "claimed", VPPIPs: []string{"192.0.2.2/24"}}}})
	})
	c, err := client.Open(context.Background(), client.Options{Socket: agentAt(t, mux)})
	if err != nil {
		t.Fatal(err)
	}
	test := connectivityTest{cluster: c, opts: &connectivityOptions{}}
	nodes, err := test.pick(context.Background())
	if err != nil || !slices.Equal(nodes, []string{"n1"}) || !strings.Contains(test.alone, "agent.remote.enabled=true") {
		t.Errorf("nodes %v, %q, %v", nodes, test.alone, err)
	}
}
