package policy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink"
)

var _ table.Counters = (*Backend)(nil)

// ReadCounters implements table.Counters, with a socket of its own. The cost depends only on the chains that are read, not on the number of
// rules in the table.
func (b *Backend) ReadCounters(ctx context.Context, families []table.Family, chains []string, each func(chain, comment string, packets uint64)) error {
	c, err := wire.Dial(b.view.NS)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, f := range families {
		for _, chain := range chains {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("read counters of nf_tables table %s: %w", b.view.Table, err)
			}
			if err := readCounters(wire.NewLister(c, b.view.Table, wire.FamilyOf(f).Proto), chain, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// readCounters reads one chain. It repeats the read if the table changes meanwhile, since rules may be missing then.
func readCounters(l wire.Lister, chain string, each func(chain, comment string, packets uint64)) error {
	type count struct {
		comment string
		packets uint64
	}
	for range wire.MaxListings {
		var counts []count
		err := l.ListRules(layerName(table.Filter)+"-"+chain, func(r wire.Rule) {
			if n, counted := packetsOf(r.Exprs); counted {
				counts = append(counts, count{commentOf(r.UserData), n})
			}
		})
		if errors.Is(err, wire.ErrDumpChanged) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read counters of nf_tables table %s: %w", l.Table, err)
		}
		for _, one := range counts {
			if one.comment != "" {
				each(chain, one.comment, one.packets)
			}
		}
		return nil
	}
	return fmt.Errorf("read counters of nf_tables table %s: %w", l.Table, wire.ErrDumpChanged)
}

// packetsOf returns the packet count of a rule's counter; false if it has none.
func packetsOf(exprs []byte) (n uint64, counted bool) {
	wire.EachAttr(exprs, func(_ uint16, e []byte) {
		if netlink.Text(wire.Attr(e, unix.NFTA_EXPR_NAME)) != "counter" {
			return
		}
		if v := wire.Attr(wire.Attr(e, unix.NFTA_EXPR_DATA), unix.NFTA_COUNTER_PACKETS); len(v) == 8 {
			n, counted = binary.BigEndian.Uint64(v), true
		}
	})
	return n, counted
}

// commentOf returns the comment in user data, or "" if there is none.
func commentOf(u []byte) string {
	for len(u) >= 2 && len(u) >= 2+int(u[1]) {
		if u[0] == wire.UserDataComment {
			return netlink.Text(u[2 : 2+int(u[1])])
		}
		u = u[2+int(u[1]):]
	}
	return ""
}
