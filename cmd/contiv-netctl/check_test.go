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

// TestLookForANode: of a node that does not answer is said what was tried: its IPv4 addresses or, where it has none, the others.
func TestLookForANode(t *testing.T) {
	var asked []netip.Addr
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
		asked = append(asked, req.To)
		return diag.ProbeResult{Sent: 1}
	})
	socket := filepath.Join(t.TempDir(), "rest.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(mux)
	srv.Listener = l
	srv.Start()
	defer srv.Close()
	c, err := client.Open(context.Background(), client.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string][]string{"six": {"fd18::2", "fd19::2"}, "both": {"198.18.0.3"}, "none": nil} {
		asked = nil
		text := lookFor(context.Background(), c, node)
		var got []string
		for _, a := range asked {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) || (text == "") != (want == nil) || !strings.Contains(text, strings.Join(want, " and ")) {
			t.Errorf("%s: %q was asked, said is %q; want %q", node, got, text, want)
		}
	}
}
