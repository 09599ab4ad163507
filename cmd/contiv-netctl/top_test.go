//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/plugins/statscollector"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestTopRows: rates are computed over the time between two readings, from the pod's point of view; a pod that was made again has none.
func TestTopRows(t *testing.T) {
	at := time.Unix(1e9, 0)
	report := func(seconds int, interfaces ...statscollector.InterfaceTraffic) statscollector.TrafficReport {
		return statscollector.TrafficReport{Sampled: at.Add(time.Duration(seconds) * time.Second), Interfaces: interfaces}
	}
	pod := func(name string, n uint64) statscollector.InterfaceTraffic {
		return statscollector.InterfaceTraffic{Namespace: "x", Pod: name, RxBytes: n, TxBytes: 2 * n, RxPackets: n / 100, TxPackets: n / 50, Drops: n / 1000}
	}
	var rates state.Rates
	before, after := report(0, pod("a", 1000), pod("b", 1000), pod("again", 9000)), report(2, pod("a", 2000), pod("b", 51000), pod("again", 10), pod("new", 5),
		statscollector.InterfaceTraffic{Interface: "eth1", RxBytes: 1 << 40})
	rates.Add("n1", &before)
	rates.Add("n1", &after)
	answers := []client.Answer[statscollector.TrafficReport]{{Node: "n1", Value: after}, {Node: "n2", Err: errors.New("away")},
		{Node: "n3", Value: statscollector.TrafficReport{Missing: "no packet moves"}}}
	rows := topRows(answers, &rates, false)
	sortTop(rows, "traffic")
	if len(rows) != 4 || rows[0].Pod != "b" || rows[0].OutBits != 200000 || rows[0].InBits != 400000 || rows[0].OutPackets != 250 || rows[1].Pod != "a" ||
		rows[2].InBits != 0 || rows[3].InBits != 0 {
		t.Errorf("%+v", rows)
	}
	if nodes := topRows(answers, &rates, true); len(nodes) != 1 || nodes[0].Node != "n1" || nodes[0].OutBits != 204000 || nodes[0].Drops != 53 {
		t.Errorf("nodes: %+v", nodes)
	}
	sortTop(rows, "name")
	if rows[0].Pod != "a" || rows[3].Pod != "new" {
		t.Errorf("by name: %+v", rows)
	}
}

// TestTopServices: connections of all nodes are added up by service; if no node counts them, the number is unknown and not zero.
func TestTopServices(t *testing.T) {
	services := []serviceRow{{Namespace: "x", Name: "dns", ClusterIPs: []string{"10.96.0.10", "fd10::a"}, Ports: []state.ServicePort{{Protocol: "UDP", Port: 53},
		{Protocol: "TCP", Port: 53, NodePort: 30053}}}}
	front := func(addr string, port uint16, protocol string, n int) statscollector.FrontendTraffic {
		return statscollector.FrontendTraffic{Address: netip.MustParseAddr(addr), Port: port, Protocol: protocol, Connections: n, Packets: uint64(10 * n)}
	}
	c := &client.Cluster{}
	counted := func(packets bool, list ...statscollector.FrontendTraffic) client.Answer[statscollector.FrontendsReport] {
		return client.Answer[statscollector.FrontendsReport]{Node: "n", Value: statscollector.FrontendsReport{CountsPackets: packets, Frontends: list}}
	}
	none := client.Answer[statscollector.FrontendsReport]{Node: "n", Value: statscollector.FrontendsReport{Missing: "not counted"}}
	rows := serviceTop(services, c, []client.Answer[statscollector.FrontendsReport]{none})
	if len(rows) != 2 || rows[0].Connections != nil || rows[0].Packets != nil || number(rows[0].Connections) != "" {
		t.Errorf("no node counts: %+v", rows)
	}
	rows = serviceTop(services, c, []client.Answer[statscollector.FrontendsReport]{
		counted(true, front("10.96.0.10", 53, "UDP", 3), front("fd10::a", 53, "UDP", 4), front("10.96.0.99", 53, "UDP", 100)),
		counted(false, front("10.96.0.10", 53, "UDP", 5), front("203.0.113.1", 30053, "TCP", 9)), none})
	if *rows[0].Connections != 12 || *rows[0].Packets != 70 || *rows[1].Connections != 0 {
		t.Errorf("%+v: %d connections, %d packets; %d", rows, *rows[0].Connections, *rows[0].Packets, *rows[1].Connections)
	}
}

func TestScaled(t *testing.T) {
	for v, want := range map[float64]string{0: "0 bit/s", 0.5: "0.50 bit/s", 12: "12 bit/s", 999.4: "999 bit/s", 999.6: "1.00 kbit/s", 12345: "12.3 kbit/s",
		999600: "1.00 Mbit/s", 2.5e9: "2.50 Gbit/s", 7e15: "7000 Tbit/s"} {
		if got := scaled(v, "bit/s"); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// top checks that a pod that sends comes first, with its rate, and that a service in use has its connections. It is called for each dataplane.
func (w *world) top() {
	w.t.Helper()
	if out, err := w.a.Run(w.ctx, "sh", "-c", "ping -q -i 0.01 -s 1000 -w 60 "+w.c.IPs[0].String()+" >/dev/null 2>&1 &"); err != nil {
		w.t.Fatalf("ping: %v %s", err, out)
	}
	w.until(true, []string{"top", "--sort", "out", "--limit", "3"}, "NAMESPACE", "kbit/s")
	out := w.want(true, []string{"top", "pods"}, "default", "a", "c")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 4 || strings.Contains(lines[1], " b ") {
		w.t.Errorf("a and c, which exchange packets, come before b:\n%s", out)
	}
	w.want(true, []string{"top", "nodes"}, w.Nodes[0].Name, w.Nodes[1].Name, "kbit/s")
	w.want(true, []string{"top", "-o", "json"}, `"outBits"`, `"pod": "a"`)
	w.want(false, []string{"top", "--sort", "size"}, "--sort", "traffic, in, out")
	w.want(false, []string{"top", "pod"}, "use pods, services or nodes")
	w.want(true, []string{"__complete", "top", ""}, "services")
}

// topServices checks that an open connection to a service is counted.
func (w *world) topServices() {
	w.t.Helper()
	w.until(true, []string{"ping", "a", "svc/far", "-c", "1"}, "1 answered")
	if w.hasPlugin || !w.vppRuns() {
		ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second) // agents count every 5 seconds
		defer cancel()
		err := poll.Until(ctx, 100*time.Millisecond, func() error {
			var rows []topService
			if err := json.Unmarshal([]byte(w.stdout("top", "services", "-o", "json")), &rows); err != nil {
				return err
			}
			for _, r := range rows {
				if r.Name == "far" && r.Connections != nil && *r.Connections > 0 {
					return nil
				}
			}
			return errNothing
		})
		if err != nil {
			w.t.Errorf("top services does not count the connection to far: %v\n%s", err, w.want(true, []string{"top", "services"}))
		}
		return
	}
	w.want(true, []string{"top", "services"}, "far", "with the contiv plugin only", " -")
}
