package tunnel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// maxErrors is the maximum number of failed entries that an error names.
const maxErrors = 8

// writes holds requests, with a note for each of them.
type writes struct {
	batch netlink.Batch
	notes []note
}

type note struct {
	done func()
	what string
	gone bool // a deletion: a missing entry is not an error
}

func (w *writes) add(n note) { w.notes = append(w.notes, n) }

// write writes the forwarding entries and neighbours that differ. Removals come first, as a tunnel address may have moved from one node to
// another.
func (v *VXLAN) write(ctx context.Context) (failed []error, err error) {
	w := &writes{}
	v.planForwarding(w)
	v.planNeighbours(w)
	if len(w.notes) == 0 {
		return nil, nil
	}
	results, err := v.kernel.Do(ctx, &w.batch)
	if err != nil {
		return nil, fmt.Errorf("write to VXLAN device %s: %w", v.cfg.Device, err)
	}
	more := 0
	for i, n := range w.notes {
		var err error
		if results != nil {
			err = results[i]
		}
		switch {
		case err == nil, n.gone && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH)):
			n.done()
		case errors.Is(err, unix.ENODEV): // the device was removed: the next Apply creates it again
			v.seen = netlink.Link{}
			more++
		case len(failed) < maxErrors:
			failed = append(failed, fmt.Errorf("VXLAN device %s: %s: %w", v.cfg.Device, n.what, err))
		default:
			more++
		}
	}
	if more > 0 {
		failed = append(failed, fmt.Errorf("VXLAN device %s: %d more entries were not written", v.cfg.Device, more))
	}
	return failed, nil
}

// inOrder returns the pending keys, sorted, so that the order of writes is deterministic.
func inOrder[K, V any](pending iter.Seq2[K, V], compare func(x, y K) int) []K {
	var keys []K
	for k := range pending {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compare)
	return keys
}

func (v *VXLAN) planForwarding(w *writes) {
	compare := func(x, y mac) int { return bytes.Compare(x[:], y[:]) }
	wanted, there := v.fdb.Desired(), v.fdb.Dataplane()
	for _, m := range inOrder(v.fdb.PendingDeletions().Iter(), compare) {
		w.batch.DelForwarding(v.seen.Index, net.HardwareAddr(m[:]), netip.Addr{})
		w.add(note{func() { there.Delete(m) }, fmt.Sprintf("remove forwarding to %x", m), true})
	}
	for _, m := range inOrder(v.fdb.PendingUpdates().Iter(), compare) {
		to, _ := wanted.Get(m)
		if have, ok := there.Get(m); ok && !have.IsValid() { // cannot be replaced: see look
			w.batch.DelForwarding(v.seen.Index, net.HardwareAddr(m[:]), netip.Addr{})
			w.add(note{func() {}, fmt.Sprintf("remove wrong forwarding to %x", m), true})
		}
		w.batch.NewForwarding(v.seen.Index, net.HardwareAddr(m[:]), to)
		w.add(note{func() { there.Set(m, to) }, fmt.Sprintf("forward %s to %s", net.HardwareAddr(m[:]), to), false})
	}
}

func (v *VXLAN) planNeighbours(w *writes) {
	wanted, there := v.neighs.Desired(), v.neighs.Dataplane()
	for _, ip := range inOrder(v.neighs.PendingDeletions().Iter(), netip.Addr.Compare) {
		w.batch.DelNeighbour(v.seen.Index, ip)
		w.add(note{func() { there.Delete(ip) }, fmt.Sprintf("remove neighbour %s", ip), true})
	}
	for _, ip := range inOrder(v.neighs.PendingUpdates().Iter(), netip.Addr.Compare) {
		m, _ := wanted.Get(ip)
		w.batch.NewNeighbour(v.seen.Index, ip, net.HardwareAddr(m[:]), uint8(v.cfg.Protocol))
		w.add(note{func() { there.Set(ip, m) }, fmt.Sprintf("neighbour %s at %s", ip, net.HardwareAddr(m[:])), false})
	}
}
