package vpp

import (
	"fmt"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestNATFigures measures services: many of them, a restart without changes, adding and removing one endpoint, adding and
// removing a pod.
func TestNATFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const services, endpoints = 5000, 10
	v := vpptest.Start(t, vpptest.Options{HeapMB: 1024, Buffers: 16384})
	g := &target{socket: v.Socket(), real: v}
	a := newAgent(t, g, Deps{})
	took := func(what string, do func()) {
		begin := time.Now()
		do()
		t.Logf("%-55s %v", what, time.Since(begin).Round(10*time.Microsecond))
	}
	service := func(n, count int) values {
		var list []string
		for e := range count {
			list = append(list, fmt.Sprintf("10.%d.%d.%d:8080@1", 1+e, n/250, n%250))
		}
		return values{dnat(fmt.Sprintf("ns/service-%d", n),
			with(port(fmt.Sprintf("10.96.%d.%d:80/tcp", n/250, n%250), list...), self))}
	}
	config := all(natOn(), tables(1, "pod"), values{loop("gw", "", inTable(1), withIP("10.1.0.1/24")),
		loop("nic", "", withIP("192.168.0.1/24")),
		natIf("nic", false, false, true)})
	a.resync(config...)
	var all5000 values
	for n := range services {
		all5000 = append(all5000, service(n, endpoints)...)
	}
	took(fmt.Sprintf("%d services of %d endpoints", services, endpoints), func() { a.commit(txn.Update, kvs(t, all5000)...) })
	config = append(config, all5000...)
	took("resync with nothing changed", func() { a.mustNotWrite("resync", config) })
	a.stop()
	a = newAgent(t, g, Deps{})
	took("restarted agent with nothing changed", func() { a.mustNotWrite("restart", config) })
	took("one endpoint more", func() { a.commit(txn.Update, kvs(t, service(77, endpoints+1))...) })
	took("one endpoint less (sessions kept)", func() { a.commit(txn.Update, kvs(t, service(77, endpoints))...) })
	for n := range 100 {
		a.commit(txn.Update, kvs(t, values{loop(fmt.Sprintf("pod%d", n), "", inTable(1), unnumberedTo("gw"))})...)
		a.commit(txn.Update, kvs(t, values{natIf(fmt.Sprintf("pod%d", n), true, true, false)})...)
	}
	pod := values{loop("pod", "", inTable(1), unnumberedTo("gw")), natIf("pod", true, true, false)}
	took("the 101st pod", func() { a.commit(txn.Update, kvs(t, pod)...) })
	took("its interface and NAT gone", func() { a.commit(txn.Update, deletions(t, pod)...) })
	took("all services gone", func() { a.commit(txn.Update, deletions(t, all5000)...) })
}
