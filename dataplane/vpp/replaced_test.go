package vpp

import (
	"path/filepath"
	"testing"

	"go.fd.io/govpp/api"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// A pod that is added while VPP is being replaced must be retried, whatever VPP's refusal is; and no request changes a VPP that has
// not been dumped yet.
func TestPodComesWhileVPPIsReplaced(t *testing.T) {
	f := vppfake.New(vppfake.Config{})
	t.Cleanup(func() { f.Close() })
	g := &target{fake: f, socket: filepath.Join(t.TempDir(), "api.sock")}
	if err := f.Listen(g.socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, g, Deps{})
	node := all(tables(1, "pod"), values{loop("gw", "02:00:00:00:01:01", inTable(1), withIP("10.1.0.1/24"))})
	pod := values{tap("pod", inTable(1), unnumberedTo("gw"))}
	a.resync(node...)
	add := func() error {
		_, err := a.s.Commit(t.Context(), &txn.Txn{Values: kvs(t, pod), Revert: true, NoRetry: true})
		return err
	}

	refusal := f.Faults.Add(vppfake.Fault{Message: "sw_interface_set_table", Retval: int32(api.NO_SUCH_FIB)})
	if err := add(); err == nil || scheduler.IsRetriable(err) {
		t.Errorf("the VPP that we know refuses: %v, want an error that is final", err)
	}
	refusal.Remove()
	f.Kill()
	if err := f.Boot(); err != nil {
		t.Fatal(err)
	}
	a.awaitNewBoot()
	before := a.conn.Writes()
	if err := add(); !scheduler.IsRetriable(err) {
		t.Errorf("a VPP that was not dumped yet: %v, want a retriable error", err)
	}
	if n := a.conn.Writes() - before; n > 0 {
		t.Errorf("%d requests changed a VPP that was not dumped yet", n)
	}
	a.commit(txn.DownstreamResync)
	for _, fault := range []vppfake.Fault{
		{Message: "sw_interface_set_table", Crash: true, Times: 1},
		{Message: "tap_create_v3", ApplyThenDisconnect: true, Times: 1},
	} {
		f.Faults.Add(fault)
		if err := add(); !scheduler.IsRetriable(err) {
			t.Errorf("lost in the middle (%s): %v, want one to try again", fault.Message, err)
		}
		a.settle(kvs(t, node))
		f.Faults.Clear()
	}
	if err := add(); err != nil {
		t.Errorf("after all: %v", err)
	}
	a.mustNotWrite("in the end", append(node, pod...))
}
