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

// Flow describes a connection: its client, the address that the client connected to, and the address that answers.
type Flow struct {
	Proto    uint8
	From     netip.AddrPort // before translation
	To       netip.AddrPort // before translation
	Answers  netip.AddrPort // after translation
	Answered bool           // there was a reply
}

// Translated reports whether the connection's destination was translated.
func (f Flow) Translated() bool { return f.To != f.Answers }

// maxFound limits how many connections are kept in memory until they are confirmed.
const maxFound = 1000

// Which selects the connections to check.
type Which struct {
	Protocols  []uint8
	Unanswered bool // only those without a reply
	// Confirm returns which of the connections that were found stale are to be removed. It receives up to maxFound connections at once, and may
	// wait. Optional: without it, all are removed.
	Confirm func(ctx context.Context, found []Flow) (remove []bool, err error)
}

// DeleteFlows removes the connections for which stale returns true, in both families. It lists all connections in one request: the kernel
// scans its whole table for each listing, which takes 12 ms for an empty one. With Unanswered, the kernel itself skips connections with a
// reply (since Linux 5.15).
func DeleteFlows(ctx context.Context, ns *nsdo.Namespace, which Which, stale func(Flow) bool) (removed int, err error) {
	if removed, err = deleteFlows(ctx, ns, which, stale); err != nil {
		return removed, fmt.Errorf("delete stale conntrack entries in %s: %w", ns, err)
	}
	return removed, nil
}

// List lists the connections of some protocols, in both families.
func List(ctx context.Context, ns *nsdo.Namespace, protocols ...uint8) (list []Flow, err error) {
	_, err = DeleteFlows(ctx, ns, Which{Protocols: protocols}, func(f Flow) bool {
		list = append(list, f)
		return false
	})
	return list, err
}

func deleteFlows(ctx context.Context, ns *nsdo.Namespace, which Which, stale func(Flow) bool) (int, error) {
	c, err := netlink.Dial(ns, unix.NETLINK_NETFILTER, timeout)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return 0, nil // no netfilter, no connections
	}
	if err != nil {
		return 0, err
	}
	defer c.Close()
	wanted := [256]bool{}
	for _, p := range which.Protocols {
		wanted[p] = true
	}
	var list netlink.Batch
	putList(&list, unix.AF_UNSPEC)
	if which.Unanswered {
		putUnanswered(&list)
	}
	found := found{confirm: which.Confirm}
	if _, err := c.Dump(&list, func(_ uint16, payload []byte) {
		flow, ok := parseFlow(payload, &wanted)
		if !ok || which.Unanswered && flow.Answered || !stale(flow) {
			return
		}
		if e, ok := parseEntry(payload); ok {
			found.add(ctx, flow, payload[0], e)
		}
	}); err != nil {
		return 0, err
	}
	if found.choose(ctx); found.err != nil {
		return 0, found.err
	}
	failed, err := c.Do(ctx, &found.del)
	if err != nil {
		return 0, err
	}
	return found.del.Len(), firstError(failed) // ENOENT: the connection has ended meanwhile
}

// found collects stale connections, and the requests that remove the confirmed ones.
type found struct {
	confirm  func(context.Context, []Flow) ([]bool, error)
	flows    []Flow
	families []uint8 // of each of the flows
	entries  []entry // of each of the flows
	del      netlink.Batch
	err      error // the first error of confirm: nothing is removed
}

func (f *found) add(ctx context.Context, flow Flow, family uint8, e entry) {
	switch {
	case f.err != nil:
		return // confirm, which has given up waiting, may still use the list
	case f.confirm == nil:
		putDelete(&f.del, family, e)
		return
	}
	f.flows, f.families, f.entries = append(f.flows, flow), append(f.families, family), append(f.entries, e)
	if len(f.flows) == maxFound {
		f.choose(ctx)
	}
}

// choose lets the connections that were collected be confirmed.
func (f *found) choose(ctx context.Context) {
	if len(f.flows) > 0 && f.err == nil {
		var remove []bool
		remove, f.err = f.confirm(ctx, f.flows)
		for i := range remove {
			if remove[i] {
				putDelete(&f.del, f.families[i], f.entries[i])
			}
		}
	}
	f.flows, f.families, f.entries = f.flows[:0], f.families[:0], f.entries[:0]
}

const (
	ctaTupleProto   = 2
	ctaProtoNum     = 1
	ctaProtoSrcPort = 2
	ctaProtoDstPort = 3
)

// tuple is one direction of a connection.
type tuple struct {
	src, dst         netip.Addr
	proto            uint8
	srcPort, dstPort uint16
}

func parseFlow(payload []byte, wanted *[256]bool) (f Flow, ok bool) {
	var orig, reply tuple
	var status uint32
	ok = netlink.Attributes(payload, sizeofNfGenMsg, func(typ uint16, v []byte) {
		switch typ {
		case ctaTupleOrig:
			orig = parseTuple(v)
		case ctaTupleReply:
			reply = parseTuple(v)
		case ctaStatus:
			if len(v) >= 4 {
				status = binary.BigEndian.Uint32(v)
			}
		}
	})
	f = Flow{Proto: orig.proto, From: netip.AddrPortFrom(orig.src, orig.srcPort), To: netip.AddrPortFrom(orig.dst, orig.dstPort),
		Answers: netip.AddrPortFrom(reply.src, reply.srcPort), Answered: status&statusSeenReply != 0}
	return f, ok && wanted[orig.proto] && orig.dst.IsValid() && reply.src.IsValid()
}

func parseTuple(b []byte) (t tuple) {
	netlink.Attributes(b, 0, func(typ uint16, v []byte) {
		netlink.Attributes(v, 0, func(field uint16, v []byte) {
			switch {
			case typ == ctaTupleIP && field == ctaTupleSrc, typ == ctaTupleIP && field == 3: // CTA_IP_V6_SRC
				t.src = netlink.Addr(v)
			case typ == ctaTupleIP && field == ctaTupleDst, typ == ctaTupleIP && field == 4: // CTA_IP_V6_DST
				t.dst = netlink.Addr(v)
			case typ == ctaTupleProto && field == ctaProtoNum && len(v) > 0:
				t.proto = v[0]
			case typ == ctaTupleProto && field == ctaProtoSrcPort && len(v) > 1:
				t.srcPort = binary.BigEndian.Uint16(v)
			case typ == ctaTupleProto && field == ctaProtoDstPort && len(v) > 1:
				t.dstPort = binary.BigEndian.Uint16(v)
			}
		})
	})
	return t
}
