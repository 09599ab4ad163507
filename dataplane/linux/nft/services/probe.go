package services

import (
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Supported is nil if the kernel has all that services of a family use of nf_tables. Nothing is changed.
func Supported(ns *nsdo.Namespace, id table.Family) error {
	return wire.Probe(ns, wire.FamilyOf(id).Proto, func(b *wire.Batch) error {
		f := newBalancer(id)
		f.add(&service{Service: probeService(id)})
		b.BlameOn("services", func() { f.write(b, 0) })
		return nil
	})
}

func probeService(id table.Family) *balance.Service {
	g := &balance.Group{ID: 1}
	front := balance.Frontend{Key: balance.Key{Addr: netip.IPv4Unspecified(), Proto: 6, Port: 1}, Inside: g, Outside: g,
		Masquerade: balance.Always, Restricted: true}
	if id == table.IPv6 {
		front.Addr = netip.IPv6Unspecified()
	}
	return &balance.Service{Name: "probe", Affinity: time.Second, Ports: []balance.Port{{Family: id, Proto: 6,
		Frontends: []balance.Frontend{front}}}}
}
