package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/lab"
)

// services counts changes of services.
type services struct{ changes atomic.Int64 }

const (
	servicePort = 80
	nodePort    = 30080
	changeEvery = 500 * time.Millisecond
	passing     = 8 // services that are created and deleted
)

// service is the number of a service: its name and addresses follow from it.
type service int

// steady keeps its backend, and has a node port; the backends of busy change all the time. The services after them are
// created and deleted.
const (
	steady service = iota + 1
	busy
	firstPassing
)

func (n service) ips() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 2, byte(n)}), netip.MustParseAddr(fmt.Sprintf("fd10:96::2:%x", int(n)))}
}

func (n service) at() (all []netip.AddrPort) {
	for _, ip := range n.ips() {
		all = append(all, netip.AddrPortFrom(ip, servicePort))
	}
	return all
}

func (n service) object() *corev1.Service {
	p := kubeapi.Port(corev1.ProtocolTCP, servicePort)
	if n == steady {
		p.NodePort = nodePort
	}
	svc := kubeapi.Service(fmt.Sprintf("soak%d", n), n.ips(), p)
	if n == steady {
		svc.Spec.Type, svc.Spec.ExternalTrafficPolicy = corev1.ServiceTypeNodePort, corev1.ServiceExternalTrafficPolicyCluster
	}
	return svc
}

func (s *soak) put(n service, backends ...podAt) error {
	var list []lab.Backend
	for _, p := range backends {
		list = append(list, lab.Backend{Node: p.node, Pod: p.Pod})
	}
	return s.Service(n.object(), port, list...)
}

func (s *soak) putServices(context.Context) error {
	if err := s.put(steady, s.pods[3]); err != nil {
		return err
	}
	return s.put(busy, s.pods...)
}

// changeServices changes the backends of the busy service, and creates and deletes other services. The backends themselves
// stay, so that no connection may fail.
func (s *soak) changeServices(ctx context.Context) {
	random := rand.New(rand.NewPCG(2, 2))
	there := map[service]bool{}
	for s.sleep(ctx, changeEvery) {
		some := append([]podAt(nil), s.pods...)
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = some[:1+random.IntN(len(some))]
		n := firstPassing + service(random.IntN(passing))
		var err error
		switch {
		case s.services.changes.Load()%2 == 0:
			err = s.put(busy, some...)
		case there[n]:
			err = s.Unservice(n.object())
			delete(there, n)
		default:
			err = s.put(n, some...)
			there[n] = true
		}
		if err != nil {
			s.fault("service", "%v", err)
		}
		s.services.changes.Add(1)
	}
}

// removeServices deletes all services.
func (s *soak) removeServices() error {
	for n := steady; n < firstPassing+passing; n++ {
		if err := s.Unservice(n.object()); err != nil {
			return err
		}
	}
	return nil
}
