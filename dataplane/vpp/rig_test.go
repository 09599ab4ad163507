package vpp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/l2"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/poll"
)

// target is a VPP under test.
type target struct {
	name   string
	socket string
	cli    func(string) (string, error) // nil for the fake
	real   *vpptest.VPP
	fake   *vppfake.Fake
	wait   time.Duration // timeout for the fake's answers, where some do not arrive; 0: long
}

// onVPP runs a test against the fake and against the real VPP.
func onVPP(t *testing.T, opts vpptest.Options, run func(t *testing.T, g *target)) {
	t.Helper()
	t.Run("fake", func(t *testing.T) {
		f := vppfake.New(vppfake.Config{Seed: 1, Workers: opts.Workers, Plugin: opts.Plugin})
		t.Cleanup(func() { f.Close() })
		socket := filepath.Join(t.TempDir(), "api.sock")
		if err := f.Listen(socket); err != nil {
			t.Fatal(err)
		}
		run(t, &target{name: "fake", socket: socket, fake: f})
		for _, r := range f.Refused() {
			t.Errorf("the fake refused %s: %s", r.Message, r.Reason)
		}
	})
	t.Run("real", func(t *testing.T) {
		v := vpptest.Start(t, opts)
		run(t, &target{name: "real", socket: v.Socket(), cli: v.CLI, real: v})
	})
}

// agent is an agent with the descriptors only. It keeps no state that a restarted agent would not have.
type agent struct {
	t    *testing.T
	conn *conn.Conn
	lane *conn.Lane
	idx  *iface.Index
	s    *scheduler.Scheduler
	stop func()
}

func newAgent(t *testing.T, g *target, deps Deps) *agent {
	t.Helper()
	return newAgentWith(t, g, func(*conn.Conn) Deps { return deps })
}

// newAgentWith is newAgent for dependencies that need the connection.
func newAgentWith(t *testing.T, g *target, make func(*conn.Conn) Deps) *agent {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(context.Background(), log)
	cfg := conn.Config{Socket: g.socket, Require: Messages(), RequestTimeout: cmp.Or(g.wait, 20*time.Second)}
	if g.fake == nil { // on a busy machine VPP may take seconds to create an af_packet interface
		cfg.HealthTimeout = 20 * time.Second
	}
	c := conn.New(cfg, log)
	c.Start(jobs)
	a := &agent{t: t, conn: c, lane: c.Lane(), idx: iface.NewIndex()}
	deps := make(c)
	deps.Lane, deps.Index = a.lane, a.idx
	a.s = scheduler.New(scheduler.Config{Backends: []scheduler.Backend{a.lane}, Jobs: jobs}, log)
	if err := Register(a.s, deps); err != nil {
		t.Fatal(err)
	}
	if err := a.s.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	a.stop = func() {
		if stopped {
			return
		}
		stopped = true
		a.s.Close()
		c.Close()
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(a.stop)
	a.awaitConnection()
	return a
}

func (a *agent) awaitConnection() {
	a.t.Helper()
	poll.Succeeds(a.t, "connection to VPP", 20*time.Second, func() error {
		if s := a.conn.State(); !s.Connected() {
			return fmt.Errorf("state: %v", s.Err)
		}
		return nil
	})
}

func (a *agent) commit(kind txn.Kind, values ...txn.KV) *txn.Record {
	a.t.Helper()
	rec, err := a.s.Commit(a.t.Context(), &txn.Txn{Kind: kind, Description: a.t.Name(), Values: values, NoRetry: true})
	if err != nil {
		a.t.Fatalf("%s: %v\n%s", kind, err, rec)
	}
	if len(rec.Pending) > 0 {
		a.t.Fatalf("%s: pending: %s\n%s", kind, rec.Pending, rec)
	}
	return rec
}

func kvs(t *testing.T, values []proto.Message) []txn.KV {
	t.Helper()
	var all []txn.KV
	for _, v := range values {
		key, err := nb.Key(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, txn.KV{Key: key, Value: v})
	}
	return all
}

// resync replaces all desired values, and returns how many requests changed VPP.
func (a *agent) resync(values ...proto.Message) (writes uint64, rec *txn.Record) {
	a.t.Helper()
	before := a.conn.Writes()
	rec = a.commit(txn.FullResync, kvs(a.t, values)...)
	return a.conn.Writes() - before, rec
}

func (a *agent) mustNotWrite(when string, values []proto.Message) {
	a.t.Helper()
	if n, rec := a.resync(values...); n != 0 {
		a.t.Errorf("%s: %d writes\n%s", when, n, rec)
	}
}

// roundTrip applies each version in turn. After each, a resync of the same agent and one of a restarted agent must write
// nothing. In the end all values are deleted and VPP must be in its original state.
func roundTrip(t *testing.T, g *target, deps Deps, versions ...[]proto.Message) {
	t.Helper()
	a := newAgent(t, g, deps)
	a.resync()
	before := vppState(t, a)
	for i, values := range versions {
		when := fmt.Sprintf("version %d", i+1)
		rec := a.commit(txn.Update, updates(t, versions, i)...)
		if len(rec.Executed) == 0 {
			t.Errorf("%s: nothing was done", when)
		}
		a.mustNotWrite(when+", resync", values)
		a.stop()
		a = newAgent(t, g, deps)
		a.mustNotWrite(when+", restarted agent", values)
		a.mustNotWrite(when+", restarted agent, second resync", values)
	}
	a.commit(txn.Update, deletions(t, versions[len(versions)-1])...)
	if after := vppState(t, a); after != before {
		t.Errorf("VPP is not as before:\n%s", diffText(before, after))
	}
}

func updates(t *testing.T, versions [][]proto.Message, i int) []txn.KV {
	all := kvs(t, versions[i])
	if i == 0 {
		return all
	}
	have := map[string]bool{}
	for _, kv := range all {
		have[kv.Key] = true
	}
	for _, kv := range deletions(t, versions[i-1]) {
		if !have[kv.Key] {
			all = append(all, kv)
		}
	}
	return all
}

func deletions(t *testing.T, values []proto.Message) []txn.KV {
	all := kvs(t, values)
	for i := range all {
		all[i].Value = nil
	}
	return all
}

// vppState returns the state of VPP in everything that the descriptors change, as text.
func vppState(t *testing.T, a *agent) string {
	t.Helper()
	var lines []string
	lane := a.conn.Lane()
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	end := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	conn.Dump(lane, &interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(kit.None)},
		func(d *interfaces.SwInterfaceDetails) {
			add("interface %s tag %q flags %s mtu %v mac %s vtr %d", d.InterfaceName, d.Tag, d.Flags, d.Mtu, d.L2Address, d.VtrOp)
		}, end)
	conn.Dump(lane, &ip.IPTableDump{}, func(d *ip.IPTableDetails) {
		add("table %d %t %q", d.Table.TableID, d.Table.IsIP6, d.Table.Name)
		conn.Dump(lane, &ip.IPRouteV2Dump{Table: d.Table}, func(r *ip.IPRouteV2Details) {
			add("route %d %s %d paths", r.Route.TableID, r.Route.Prefix, len(r.Route.Paths))
		}, end)
	}, end)
	conn.Dump(lane, &l2.BridgeDomainDump{BdID: kit.None, SwIfIndex: interface_types.InterfaceIndex(kit.None)},
		func(d *l2.BridgeDomainDetails) { add("bridge domain %q %d members", d.BdTag, len(d.SwIfDetails)) }, end)
	conn.Dump(lane, &l2.L2XconnectDump{}, func(d *l2.L2XconnectDetails) { add("xconnect %v", *d) }, end)
	natLines(lane, add, end)
	aclLines(lane, add, end)
	contivLines(lane, add, end)
	for _, v6 := range []bool{false, true} {
		conn.Dump(lane, &ip_neighbor.IPNeighborDump{SwIfIndex: interface_types.InterfaceIndex(kit.None), Af: kit.Family(v6)},
			func(d *ip_neighbor.IPNeighborDetails) { add("neighbour %v", d.Neighbor) }, end)
		conn.Call(lane, &ip_neighbor.IPNeighborConfigGet{Af: kit.Family(v6)},
			func(r *ip_neighbor.IPNeighborConfigGetReply, err error) {
				end(err)
				add("neighbours %v", *r)
			})
	}
	lane.Flush(t.Context())
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func diffText(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out []string
	for _, l := range was {
		if !slices.Contains(is, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range is {
		if !slices.Contains(was, l) {
			out = append(out, "+ "+l)
		}
	}
	return strings.Join(out, "\n")
}

// invoke makes one request outside the agent.
func (a *agent) invoke(req api.Message, reply api.Message) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 10*time.Second)
	defer cancel()
	if err := a.conn.Invoke(ctx, req, reply); err != nil {
		a.t.Fatal(err)
	}
}

// run runs a command on the host.
func run(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// veth makes a pair of devices that exists until the end of the test.
func veth(t *testing.T, a, b string) {
	t.Helper()
	_ = exec.Command("ip", "link", "del", a).Run() // a leftover
	run(t, fmt.Sprintf("ip link add %s type veth peer name %s && ip link set %s up && ip link set %s up", a, b, a, b))
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", a).Run() })
}
