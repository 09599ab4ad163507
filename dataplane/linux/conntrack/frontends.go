package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// The counters of a connection, which the kernel has if net.netfilter.nf_conntrack_acct is 1.
const (
	ctaCountersOrig    = 9
	ctaCountersReply   = 10
	ctaCountersPackets = 1
	ctaCountersBytes   = 2
)

// Frontend is an address and port of a service, which clients use and which is translated.
type Frontend struct {
	netip.AddrPort
	Proto uint8 // IP protocol
}

// Flows describes the current connections of a frontend.
type Flows struct {
	Connections int
	// Packets and Bytes are the sums over these connections in both directions; zero if the kernel does not count them.
	Packets, Bytes uint64
}

// Frontends counts connections with a translated destination by that destination. It lists all connections of both families.
func Frontends(ctx context.Context, ns *nsdo.Namespace) (map[Frontend]Flows, error) {
	out := map[Frontend]Flows{}
	for _, af := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := countFrontends(ns, af, out); err != nil {
			return nil, fmt.Errorf("count connections by service in %s: %w", ns, err)
		}
	}
	return out, nil
}

func countFrontends(ns *nsdo.Namespace, af uint8, out map[Frontend]Flows) error {
	c, err := netlink.Dial(ns, unix.NETLINK_NETFILTER, timeout)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil // no netfilter, no connections
	}
	if err != nil {
		return err
	}
	defer c.Close()
	var list netlink.Batch
	putList(&list, af)
	_, err = c.Dump(&list, func(_ uint16, payload []byte) {
		if f, flow, ok := frontendOf(payload); ok {
			sum := out[f]
			out[f] = Flows{sum.Connections + 1, sum.Packets + flow.Packets, sum.Bytes + flow.Bytes}
		}
	})
	return err
}

// frontendOf returns the destination that the client of a connection used, if it was translated.
func frontendOf(payload []byte) (f Frontend, flow Flows, ok bool) {
	var orig, reply tuple
	ok = netlink.Attributes(payload, sizeofNfGenMsg, func(typ uint16, v []byte) {
		switch typ {
		case ctaTupleOrig:
			orig = parseTuple(v)
		case ctaTupleReply:
			reply = parseTuple(v)
		case ctaCountersOrig, ctaCountersReply:
			netlink.Attributes(v, 0, func(field uint16, v []byte) {
				switch {
				case len(v) < 8:
				case field == ctaCountersPackets:
					flow.Packets += binary.BigEndian.Uint64(v)
				case field == ctaCountersBytes:
					flow.Bytes += binary.BigEndian.Uint64(v)
				}
			})
		}
	})
	if !ok || !orig.dst.IsValid() || !reply.src.IsValid() || orig.dst == reply.src && orig.dstPort == reply.srcPort {
		return f, flow, false
	}
	return Frontend{netip.AddrPortFrom(orig.dst, orig.dstPort), orig.proto}, flow, true
}
