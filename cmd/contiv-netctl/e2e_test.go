//go:build linux

package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/poll"
)

// wrongInput checks that errors name what is wrong, the cause, and the fix.
func (w *world) wrongInput() {
	first := w.Nodes[0].Name
	token := filepath.Join(w.dir, "wrong-token")
	w.must(os.WriteFile(token, []byte("another token of enough characters\n"), 0o600))
	for _, tc := range []struct {
		args  string
		texts []string
	}{
		{"trace a nope", []string{`unknown name "nope"`, "serves no service default/nope", "contiv-netctl pods, nodes and services list them"}},
		{"trace a", []string{"trace: accepts 2 arg(s), received 1; usage: contiv-netctl trace FROM TO"}},
		{"top --no-such", []string{"top: unknown flag: --no-such; contiv-netctl top --help"}},
		{"resync nope", []string{`there is no node "nope"; the cluster has ` + first}},
		{"events x", []string{`parameter "seq-num": "x" is not allowed, must be a whole number`}},
		{"--timeout -1s status", []string{"--timeout -1s: use a positive duration"}},
		{"--watch=-1s status", []string{"--watch -1s: use a positive duration"}},
		{"--server 127.0.0.1:1 status", []string{"agent 127.0.0.1:1 does not respond: connection refused; check --server"}},
		{"--server nope status", []string{`--server "nope": `, "use host:port"}},
		{"--token-file /nope status", []string{"--token-file: open /nope: no such file"}},
		{"--token-file " + token + " status", []string{"missing or wrong bearer token; check the token in --token-file"}},
		{"--ca /nope status", []string{"--ca: open /nope: no such file"}},
		{"--server " + w.Nodes[1].Name + ":9999 status", []string{"does not respond", "lookup"}},
		{"--server 127.0.0.1:9999 --plain status", []string{"leave out --plain"}},
		{"-o xml status", []string{`output format "xml": use table, wide, json, yaml`}},
	} {
		w.want(false, strings.Fields(tc.args), tc.texts...)
	}
}

// common tests what works alike on every dataplane.
func (w *world) common() {
	first, second := w.Nodes[0].Name, w.Nodes[1].Name
	out := w.want(true, []string{"nodes"}, first, second, "claimed", "10.199.0.102", "vxlan")
	if n := strings.Count(out, " yes "); n != 2 {
		w.t.Errorf("%d of 2 nodes are ready, and answer from here:\n%s", n, out)
	}
	w.want(true, []string{"pods"}, w.a.IPs[0].String(), w.c.IPs[1].String())
	w.want(true, []string{"pods", second, "-o", "yaml"}, "name: c", "node: "+second)
	w.want(true, []string{"ipam"}, "10.1.1.0/24", "10.1.2.0/24", "fd10:1:0:2::/64")
	w.want(true, []string{"events", "--node", second}, "Add Pod", "Database Resync")
	w.want(true, []string{"dump", "--node", second, "--state", "CONFIGURED"}, "CONFIGURED")
	w.want(true, []string{"services"}, "NAMESPACE")
	w.want(false, []string{"services", "default/nope"}, "serves no service default/nope")
	w.want(false, []string{"ipam", "nobody"}, "there is no node", first)
	w.want(true, []string{"status"}, "✓ nodes      2 of 2 ready", "✓ etcd", "transport vxlan", "pods       3 connected")
	w.want(true, []string{"version"}, "contiv-netctl devel", first, second)
	w.want(true, []string{"logs", second, "--last", "2000"}, "contiv-agent is starting", "pod added", "pod=default/c")
	w.want(true, []string{"nodes", "-o", "name"}, first+"\n"+second+"\n")
	w.want(true, []string{"nodes", "-o", "wide"}, "STARTED", "COMMIT")
	w.want(true, []string{"pods", "-o", "name"}, "default/c\n")
	w.want(false, []string{"dump", "no-kind"}, "no such kind", "the kinds are")
	w.want(true, []string{"nodes", "--color", "always"}, "\x1b[32myes\x1b[0m")
	w.want(true, []string{"__complete", "dump", ""}, "linux-")
	w.want(true, []string{"__complete", "dump", "--state", ""}, "FAILED")
	w.want(false, []string{"pods", "nobody"}, "there is no node", first)
	w.wrongInput()
	w.want(false, []string{"nodes", "-o", "xml"}, "use table, wide, json, yaml")
	w.want(true, []string{"__complete", "ping", "default/"}, "default/a", "default/c")
	w.want(true, []string{"__complete", "dump", "--node", ""}, first, second)
	w.want(true, []string{"__complete", "nodes", "-o", ""}, "yaml")

	// On an overloaded machine, a probe may get no reply in time.
	w.until(true, []string{"ping", "a", "default/c"}, "3 sent, 3 answered")
	w.until(true, []string{"ping", "a", "c", "-6"}, "3 sent, 3 answered")
	w.want(true, []string{"ping", "c", "a", "-c", "1"}, "1 sent, 1 answered")
	w.want(true, []string{"ping", first, "c", "-c", "1"}, "1 sent, 1 answered")
	w.want(false, []string{"trace", first, "c"}, "the trace source must be a pod")
	w.want(false, []string{"ping", "nobody", "c"}, "unknown name")
	w.want(false, []string{"ping", "a", "c", "--proto", "tcp", "--port", "81", "-c", "1"}, "connection refused")
	w.top()
	w.until(true, []string{"check"}, "0 findings")

	var rep traceReport
	text := w.want(true, []string{"trace", "a", "c", "-o", "json"})
	if err := json.Unmarshal([]byte(text), &rep); err != nil {
		w.t.Fatal(err)
	}
	if len(rep.Sides) != 2 || rep.Sides[0].There.Outcome != "sent" || rep.Sides[1].There.Outcome != "sent" ||
		!strings.Contains(rep.Sides[1].There.Out, "default/c") {
		w.t.Errorf("trace of a packet that arrives: %s", text)
	}
	w.want(true, []string{"trace", "a", "b"}, "pod default/a", "pod default/b", "delivered, reply received")
	w.want(true, []string{"trace", "a", "c", "-6"}, "delivered, reply received")
}

// formats checks that every command has structured output for scripts.
func (w *world) formats() {
	file := filepath.Join(w.dir, "formats")
	for _, command := range []string{
		"nodes", "pods", "ipam", "services", "nat", "dump", "events", "events 1", "events --detail", "ping a c -c 1", "trace a c", "check",
		"resync -", "version", "status",
	} {
		out := w.want(true, append(strings.Fields(command), "-o", "json"))
		var asJSON, asYAML any
		if err := json.Unmarshal([]byte(out), &asJSON); err != nil || asJSON == nil {
			w.t.Errorf("contiv-netctl %s -o json: %v\n%s", command, err, out)
		}
		_ = os.Remove(file) // not every command makes the file
		out = w.want(true, append(strings.Fields(command), "-o", "yaml"))
		if err := yaml.Unmarshal([]byte(out), &asYAML); err != nil || fmt.Sprintf("%T", asYAML) != fmt.Sprintf("%T", asJSON) {
			w.t.Errorf("contiv-netctl %s -o yaml: %v, not as JSON\n%s", command, err, out)
		}
	}
}

// report checks that the bundle has both nodes and no secret.
func (w *world) report() {
	file := filepath.Join(w.dir, "report.tar.gz")
	w.want(true, []string{"report", "-f", file}, file, "node "+w.Nodes[1].Name+": ")
	files := unpack(w.t, file)
	for _, want := range []string{
		"nodes/" + w.Nodes[0].Name + "/logs.txt", "nodes/" + w.Nodes[1].Name + "/configuration.json", "netctl.json",
		"nodes/" + w.Nodes[0].Name + "/scheduler-dump.json", "nodes/" + w.Nodes[1].Name + "/events.txt", "check.json",
	} {
		if files[want] == "" {
			w.t.Errorf("the bundle has no %s", want)
		}
	}
	key, err := os.ReadFile(filepath.Join(w.dir, "tls.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	for name, text := range files {
		if strings.Contains(text, theToken) || strings.Contains(text, strings.Split(string(key), "\n")[1]) {
			w.t.Errorf("%s has a secret", name)
		}
	}
	w.want(false, []string{"report", "-f", file}, "choose another file")
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		top, name, ok := strings.Cut(h.Name, "/")
		if !ok || !strings.HasPrefix(top, "contiv-report-") {
			t.Errorf("%s is not in the report's folder", h.Name)
		}
		out[name] = string(data)
	}
}

// fault is a change that is made without the agent.
type fault struct {
	name  string
	plant func()
	undo  func() // reverts what the agent would not repair by itself; may be nil
	check string // text that check must print
	trace string // place where trace must report the packet from a to c as lost; empty: it arrives
}

// traced checks where trace reports packets as lost. On a busy machine the agent may repair the fault while the trace runs: then the fault is
// made again.
func (w *world) traced(f fault) {
	w.t.Helper()
	var out string
	for range 3 {
		var arrived bool
		if out, arrived = w.netctl("trace", "a", "c"); !arrived && strings.Contains(out, f.trace) {
			return
		}
		w.mend(f)
		f.plant()
	}
	w.t.Errorf("%s: trace does not say %q:\n%s", f.name, f.trace, out)
}

// mend lets the agents repair the fault.
func (w *world) mend(f fault) {
	w.t.Helper()
	if f.undo != nil {
		f.undo()
	}
	w.repair(0)
	w.repair(1)
}

func (w *world) faults(list []fault) {
	for _, f := range list {
		f.plant()
		out := w.want(false, []string{"check"})
		if !strings.Contains(out, f.check) {
			w.t.Errorf("%s: check does not find %q:\n%s", f.name, f.check, out)
		}
		if f.trace != "" {
			w.traced(f)
		}
		w.mend(f)
		w.until(true, []string{"check"}, "0 findings")
	}
}

func TestVPP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "vpp", "vxlan")
	w.common()
	w.metrics("linux")
	second := w.Nodes[1].Name
	w.want(true, []string{"vppcli", second, "show", "version"}, "v25.10")
	before := w.vpp(1, "show interface")
	w.want(false, []string{"vppcli", second, "show version create loopback interface"}, "only read")
	w.want(false, []string{"vppcli", second, "create", "loopback", "interface"}, "only read")
	w.want(false, []string{"vppcli", second, "--write", "create", "loopback", "interface"}, "--vpp-cli-write")
	if after := w.vpp(1, "show interface"); strings.Count(after, "loop") != strings.Count(before, "loop") {
		t.Errorf("a command that was refused has made an interface:\n%s", after)
	}
	// The reason for the grammar: VPP runs the rest of a line as a command.
	w.vpp(1, "show version create loopback interface instance 77")
	if !strings.Contains(w.vpp(1, "show interface"), "loop77") {
		t.Log("this VPP does not run the rest of a line; the grammar of commands that only read could be simpler")
	}
	w.vpp(1, "delete loopback interface intfc loop77")
	w.cut()
	w.faults(w.vppFaults())
	w.report()
}

func (w *world) vppFaults() []fault {
	bvi := func(i int) string { // returns VPP's name of vxlanBVI
		return w.nameOf(i, "12:2b:00:00:00:0")
	}
	return []fault{{
		name: "route", plant: func() { w.deleteRoute(0, "10.1.2.0/24") },
		check: "route is missing in the dataplane", trace: "no route to the destination",
	}, {
		name: "ARP entry", plant: func() { w.vpp(0, "ip neighbor del "+bvi(0)+" 192.168.30.2 12:2b:00:00:00:02") },
		check: "ARP entry is missing",
	}, {
		name: "forwarding entry", plant: func() { w.vpp(0, "l2fib del 12:2b:00:00:00:02 1") },
		check: "forwarding entry is missing", trace: "dropped on " + w.Nodes[0].Name,
	}, {
		name: "overlay interface down", plant: func() { w.vpp(1, "set interface state "+bvi(1)+" down") },
		check: "interface", trace: "on " + w.Nodes[1].Name,
	}, {
		name: "pod's route on the other node", check: "route of pod default/c is missing", trace: "dropped on " + w.Nodes[1].Name,
		plant: func() { w.deleteRoute(1, w.c.IPs[0].String()+"/32") },
	}}
}

// deleteRoute removes a route of the pods' table by the API, like the agent: VPP's CLI does not remove routes that were added by the API.
func (w *world) deleteRoute(i int, dst string) {
	w.t.Helper()
	prefix, err := ip_types.ParsePrefix(dst)
	if err != nil {
		w.t.Fatal(err)
	}
	jobs := lifecycle.NewGroup(w.ctx, slog.New(slog.DiscardHandler))
	defer func() { _ = jobs.Stop(time.Minute) }()
	c := conn.New(conn.Config{Socket: w.Nodes[i].VPP.Socket()}, slog.New(slog.DiscardHandler))
	c.Start(jobs)
	defer c.Close()
	req := &ip.IPRouteAddDel{Route: ip.IPRoute{TableID: 1, Prefix: prefix}}
	if err := poll.Until(w.ctx, 10*time.Millisecond, func() error {
		return c.Invoke(w.ctx, req,
			&ip.IPRouteAddDelReply{})
	}); err != nil {
		w.t.Fatalf("delete the route to %s: %v", dst, err)
	}
}

// cut tests packets that are lost between the nodes.
func (w *world) cut() {
	if err := w.Cut(w.ctx, 1); err != nil {
		w.t.Fatal(err)
	}
	w.want(false, []string{"trace", "a", "c"}, "lost between the nodes")
	if err := w.Mend(w.ctx, 1); err != nil {
		w.t.Fatal(err)
	}
}

// nameOf returns the VPP interface with a MAC address that begins with mac.
func (w *world) nameOf(i int, mac string) string {
	name := ""
	for line := range strings.Lines(w.vpp(i, "show hardware-interfaces")) {
		if !strings.HasPrefix(line, " ") {
			name = strings.Fields(line + " -")[0]
		}
		if strings.Contains(line, "Ethernet address "+mac) {
			return name
		}
	}
	w.t.Fatalf("node %d has no interface with the MAC %s…", i, mac)
	return ""
}

func TestLinux(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "linux", "vxlan")
	w.common()
	w.formats()
	w.metrics("vpp")
	w.want(false, []string{"vppcli", "-", "show", "version"}, "has no VPP")
	// The driver repairs most faults at once; the others are found.
	pod := w.c.IPs[0].String()
	w.faults([]fault{{
		name: "another program's route", check: "there is no route to pod default/c", trace: "a blackhole route",
		plant: func() { w.node(1, "ip route replace blackhole "+pod) }, undo: func() { w.node(1, "ip route del blackhole "+pod) },
	}})
	w.cut()
	w.node(0, "nft add table ip fw && nft 'add chain ip fw f { type filter hook forward priority 10; }' && "+
		"nft add rule ip fw f ip daddr "+w.c.IPs[0].String()+" drop")
	w.want(false, []string{"trace", "a", "c"}, "dropped on "+w.Nodes[0].Name, "rule in ip fw f")
	w.node(0, "nft delete table ip fw")
	w.report()
}

func TestNoOverlay(t *testing.T) {
	t.Parallel()
	for _, dataplane := range []string{"vpp", "linux"} {
		t.Run(dataplane, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dataplane, "nooverlay")
			w.until(true, []string{"check"}, "0 findings")
			w.want(true, []string{"trace", "a", "c"}, "delivered, reply received")
			w.cut()
		})
	}
}
