package plugin_test

import (
	"net/netip"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

func (r *rig) member(set uint64, a netip.Addr, add bool) {
	r.Helper()
	r.do(r.api.ContivSetMemberAddDel(r.Context(), &contiv.ContivSetMemberAddDel{
		IsAdd: add, SetID: set, Prefix: ip_types.Prefix{Address: address(a), Len: uint8(a.BitLen())},
	}))
}

// allowOnly lets a pod receive only from a set of clients, on one TCP port.
func (r *rig) allowOnly(p *port, set uint64, number uint16, clients ...netip.Addr) {
	r.Helper()
	ctx := r.Context()
	r.do(r.api.ContivSetAddDel(ctx, &contiv.ContivSetAddDel{IsAdd: true, ID: set, Name: "clients", Kind: contiv.CONTIV_SET_API_NETWORKS}))
	for _, a := range clients {
		r.member(set, a, true)
	}
	rule := contiv.ContivRule{Action: contiv.CONTIV_RULE_API_ALLOW, Protocol: tcp, Source: set, NPorts: 1}
	rule.Ports[0] = contiv.ContivPortRange{First: number, Last: number}
	r.do(r.api.ContivPolicySet(ctx, &contiv.ContivPolicySet{ID: set, Name: "allow", NIngress: 1, NRules: 1, Rules: []contiv.ContivRule{rule}}))
	r.do(r.api.ContivEndpointPolicySet(ctx, &contiv.ContivEndpointPolicySet{
		SwIfIndex: p.index, Name: p.Name, Ingress: contiv.CONTIV_RULE_API_ALLOW, Egress: contiv.CONTIV_RULE_API_ALLOW, NIngress: 2, NItems: 2,
		Items: []contiv.ContivTierItem{{PolicyID: set}, {Action: contiv.CONTIV_RULE_API_DENY}},
	}))
}

// TestBulkUnderPolicy: bulk data arrives unchanged through a rule that allows it, while members of its set are added and removed; another
// port stays closed.
func TestBulkUnderPolicy(t *testing.T) {
	for _, options := range []string{"", "gso"} {
		t.Run(options, func(t *testing.T) {
			r := newRig(t, vpptest.Options{Vhostshim: true})
			a, b := r.pod("a", options), r.pod("b", options)
			r.echo(b, 8080)
			r.echo(b, 8081)
			r.allowOnly(b, 7, 8080, a.v4, a.v6)
			stop, stopped := make(chan struct{}), make(chan int)
			go func() {
				n := 0
				for other := netip.MustParseAddr("10.9.0.1"); ; n++ {
					select {
					case <-stop:
						stopped <- n
						return
					default:
						r.member(7, other, n%2 == 0)
						time.Sleep(time.Millisecond)
					}
				}
			}()
			for _, to := range []netip.Addr{b.v4, b.v6} {
				begin := time.Now()
				const size = 8 << 20 // a busy machine without offloads moves 12 MB/s
				if err := r.through(a, netip.AddrPortFrom(to, 8080).String(), size); err != nil {
					t.Errorf("to %s: %v", to, err)
				}
				t.Logf("to %s: %.2f Gb/s each way", to, size*8/time.Since(begin).Seconds()/1e9)
				if c, err := dial(a, netip.AddrPortFrom(to, 8081).String(), time.Second); err == nil {
					c.Close()
					t.Errorf("%s answers on a port that is closed", to)
				}
			}
			close(stop)
			t.Logf("%d changes of the set meanwhile", <-stopped)
			if n := r.stats().Denied; n == 0 {
				t.Error("no packet was counted as denied")
			}
		})
	}
}
