package vpp

import (
	"fmt"
	"testing"
	"time"

	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestFigures measures what matters on a node: a pod, many routes, and a restart without changes.
func TestFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	v := vpptest.Start(t, vpptest.Options{HeapMB: 512, Buffers: 16384})
	g := &target{socket: v.Socket(), real: v}
	a := newAgent(t, g, Deps{})
	config := all(tables(1, "pod"), values{loop("gw", "", inTable(1), withIP("10.1.0.1/24"))})
	for i := range 300 {
		config = append(config, loop(fmt.Sprintf("pod%d", i), "", inTable(1), unnumberedTo("gw")))
	}
	took := func(what string, do func()) {
		begin := time.Now()
		do()
		t.Logf("%-40s %v", what, time.Since(begin).Round(10*time.Microsecond))
	}
	took("300 pods", func() { a.resync(config...) })
	var routes values
	for i := range 10000 {
		routes = append(routes, &vpp_l3.Route{
			VrfId: 1, DstNetwork: fmt.Sprintf("10.100.%d.%d/32", i/256, i%256), NextHopAddr: "10.1.0.2", OutgoingInterface: "gw",
		})
	}
	took("10 000 routes", func() { a.commit(txn.Update, kvs(t, routes)...) })
	config = append(config, routes...)
	took("resync with nothing changed", func() { a.mustNotWrite("resync", config) })
	a.stop()
	a = newAgent(t, g, Deps{})
	took("restarted agent with nothing changed", func() { a.mustNotWrite("restart", config) })
	pod := values{loop("new", "", inTable(1), unnumberedTo("gw"))}
	took("one pod more", func() { a.commit(txn.Update, kvs(t, pod)...) })
	took("one pod less", func() { a.commit(txn.Update, deletions(t, pod)...) })
	took("10 000 routes less", func() { a.commit(txn.Update, deletions(t, routes)...) })
}
