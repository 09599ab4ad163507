package vpp

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// The figures of cnat beside those of NAT44, for the same IPv4 services.
func TestCnatFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const services = 5000
	v := vpptest.Start(t, vpptest.Options{HeapMB: 1024})
	base := all(natOn(), tables(1, "pod"), values{loop("gw", "", inTable(1), withIP("10.1.0.1/24")),
		loop("nic", "", withIP("192.168.0.1/24"))})
	for _, endpoints := range []int{10, 50} {
		for what, service := range map[string]func(n, count int) proto.Message{"nat44": nat44Service, "cnat": cnatService} {
			a := newAgent(t, &target{socket: v.Socket(), real: v}, Deps{})
			a.resync(base...)
			took := func(step string, do func()) {
				begin := time.Now()
				do()
				t.Logf("%-6s %2d endpoints: %-40s %v", what, endpoints, step, time.Since(begin).Round(10*time.Microsecond))
			}
			var list values
			for n := range services {
				list = append(list, service(n, endpoints))
			}
			took("5 000 services", func() { a.commit(txn.Update, kvs(t, list)...) })
			config := all(base, list)
			a.stop()
			a = newAgent(t, &target{socket: v.Socket(), real: v}, Deps{})
			took("restarted agent with nothing changed", func() { a.mustNotWrite("restart", config) })
			took("one endpoint more", func() { a.commit(txn.Update, kvs(t, values{service(77, endpoints+1)})...) })
			took("all gone", func() { a.commit(txn.Update, deletions(t, list)...) })
			a.stop()
		}
	}
	a := newAgent(t, &target{socket: v.Socket(), real: v}, Deps{})
	a.resync(base...)
	begin := time.Now()
	for n := range 100 {
		name := fmt.Sprintf("pod%d", n)
		a.commit(txn.Update, kvs(t, values{loop(name, "", inTable(1)), cnatIf(name, vpp_cnat.Interface_POD, false, true)})...)
	}
	t.Logf("100 pods' interfaces with cnat, one after the other: %v", time.Since(begin))
}

func serviceEndpoints(n, count int) (list []string) {
	for e := range count {
		list = append(list, fmt.Sprintf("10.%d.%d.%d", 1+e, n/250, n%250))
	}
	return list
}

func nat44Service(n, count int) proto.Message {
	var list []string
	for _, e := range serviceEndpoints(n, count) {
		list = append(list, e+":8080@1")
	}
	return dnat(fmt.Sprintf("ns/service-%d", n), with(port(fmt.Sprintf("10.96.%d.%d:80/tcp", n/250, n%250), list...), self))
}

func cnatService(n, count int) proto.Message {
	return translation(fmt.Sprintf("10.96.%d.%d", n/250, n%250), 80, serviceEndpoints(n, count)...)
}
