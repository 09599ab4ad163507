package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// Translated counts translated connections by the address behind the translation: the backend of a service, or the sender of packets that
// leave with the node's address. It lists all connections of both families.
func Translated(ctx context.Context, ns *nsdo.Namespace) (map[netip.Addr]int, error) {
	out := map[netip.Addr]int{}
	for _, af := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := countTranslated(ns, af, out); err != nil {
			return nil, fmt.Errorf("count translated connections in %s: %w", ns, err)
		}
	}
	return out, nil
}

func countTranslated(ns *nsdo.Namespace, af uint8, out map[netip.Addr]int) error {
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
		if a, ok := behind(payload); ok {
			out[a]++
		}
	})
	return err
}

// behind returns the address behind the translation of a connection, and false if the connection is not translated.
func behind(payload []byte) (a netip.Addr, ok bool) {
	var orig, reply tuple
	ok = netlink.Attributes(payload, sizeofNfGenMsg, func(typ uint16, v []byte) {
		switch typ {
		case ctaTupleOrig:
			orig = parseTuple(v)
		case ctaTupleReply:
			reply = parseTuple(v)
		}
	})
	switch {
	case !ok || !orig.src.IsValid() || !reply.src.IsValid():
		return a, false
	case orig.dst != reply.src || orig.dstPort != reply.srcPort: // the destination is translated
		return reply.src, true
	case orig.src != reply.dst || orig.srcPort != reply.dstPort: // the source is translated
		return orig.src, true
	}
	return a, false
}
