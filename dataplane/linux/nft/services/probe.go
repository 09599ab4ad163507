package services

import (
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Supported returns nil if the kernel has all features of nf_tables that services of a family use. Nothing is changed.
func Supported(ns *nsdo.Namespace, id table.Family) error {
	return wire.Probe(ns, wire.FamilyOf(id).Proto, func(b *wire.Batch) error {
		f := newBalancer(id)
		f.add(&service{Service: probeService(id)})
		b.BlameOn("services", func() { f.write(b, 0) })
		return nil
	})
}

func probeService(id table.Family) *lb.Service {
	g := &lb.Group{ID: 1}
	front := lb.Frontend{Key: lb.Key{Addr: netip.IPv4Unspecified(), Proto: 6, Port: 1}, Inside: g, Outside: g,
		Masquerade: lb.Always, Restricted: true}
	if id == table.IPv6 {
		front.Addr = netip.IPv6Unspecified()
	}
	return &lb.Service{Name: "probe", Affinity: time.Second, Ports: []lb.Port{{Family: id, Proto: 6,
		Frontends: []lb.Frontend{front}}}}
}
