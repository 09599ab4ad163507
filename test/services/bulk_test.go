package services

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/traffic"
)

// TestBulkThroughServices transfers many streams at full speed, in both directions, through cluster IPs with backends of both nodes, and from the
// outside through a node port and a load balancer's address with source ranges: on VPP without the plugin by NAT44 and ACLs. Agents are killed during
// the transfer. No byte is wrong, no stream ends, and the new agents write nothing.
func TestBulkThroughServices(t *testing.T) {
	for _, m := range []mode{vpp, vppPlugin} {
		t.Run(string(m), func(t *testing.T) {
			m.needs(t)
			matrix.Only(t, string(vppPlugin))
			w := newWorld(t, m)
			b := &bulkLoad{world: w, traffic: traffic.New()}
			t.Cleanup(b.traffic.Close)
			b.serve()
			w.calm()
			b.moves("its agents")
			for i, n := range w.members {
				w.must(n.restart(w.ctx))
				w.synced(n)
				b.moves(fmt.Sprintf("a new agent on node %d", i+1))
				if writes, err := n.writes(w.ctx); err != nil || writes != 0 {
					t.Errorf("node %d: the new agent has written %.0f times, %v", i+1, writes, err)
				}
			}
		})
	}
}

// bulkLoad is a number of streams through services. Clients of different services have different backends.
type bulkLoad struct {
	*world
	traffic *traffic.Traffic
	streams []*traffic.Stream
}

const bulkPort = 5210

// serve starts servers, services and streams.
func (b *bulkLoad) serve() {
	b.t.Helper()
	for _, name := range []string{"a", "b", "c", "d"} {
		_, err := b.traffic.Serve(b.spaces[name], bulkPort)
		b.must(err)
	}
	inside := b.bulkService("bulk-inside", 60, nil, "a", "c")
	outside := b.bulkService("bulk-outside", 61, func(s *corev1.Service) {
		loadBalancer("192.168.16.0/24", "fd00:16::/64")(s, 61)
	}, "b", "d")
	n := 8 / len(b.mode.families()) // checking the bytes uses most of the time of a small machine
	for f := range b.mode.families() {
		b.open(n, "p1", at(inside, f))
		b.open(n, "p2", at(inside, f))
		b.open(n, "out", lbAt(outside)[f])
		b.open(n, "out", netip.AddrPortFrom(b.uplinks[1][f], uint16(outside.Spec.Ports[0].NodePort)))
	}
}

// bulkService puts a service for stream servers, and waits until it serves.
func (b *bulkLoad) bulkService(name string, number int, change func(*corev1.Service), servers ...string) *corev1.Service {
	b.t.Helper()
	svc := b.service(name, number, change)
	svc.Spec.Ports = svc.Spec.Ports[:1] // only TCP
	b.must(b.api.Put(svc))
	for f, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		var list []discoveryv1.Endpoint
		for _, s := range servers {
			list = append(list, kubeapi.Endpoint(b.nodeOf[s], b.addrs[s][f]))
		}
		b.must(b.api.Put(kubeapi.Slice(svc, family, bulkPort, list...)))
	}
	return svc
}

func (b *bulkLoad) open(n int, client string, to netip.AddrPort) {
	b.t.Helper()
	for i := range n {
		var s *traffic.Stream
		b.within(time.Minute, client+" reaches "+to.String(), func() (err error) {
			s, err = b.traffic.Stream(b.spaces[client], to, traffic.StreamOptions{Name: fmt.Sprintf("%d from %s to %s", i, client, to), Up: true, Down: true})
			return err
		})
		b.streams = append(b.streams, s)
	}
}

// moves waits until each stream has transferred bytes in both directions, without a fault.
func (b *bulkLoad) moves(with string) {
	b.t.Helper()
	const some = 256 << 10
	var up, down []int64
	for _, s := range b.streams {
		up, down = append(up, s.Up.Load()), append(down, s.Down.Load())
	}
	for i, s := range b.streams {
		b.within(time.Minute, s.Name+" goes on with "+with, func() error {
			if err := s.Err(); err != nil {
				return err
			}
			if u, d := s.Up.Load()-up[i], s.Down.Load()-down[i]; u < some || d < some {
				return fmt.Errorf("%d bytes up, %d down", u, d)
			}
			return nil
		})
	}
}
