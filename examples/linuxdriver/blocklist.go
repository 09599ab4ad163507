package main

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// block is a message to blockList: drop packets from the address.
type block struct{ addr netip.Addr }

// blockList is a manager. It records messages, and writes to the driver's tables when the loop calls it.
type blockList struct {
	tables *intdataplane.Tables
	begun  bool
	add    []table.Member
}

var _ intdataplane.Manager = (*blockList)(nil)

// OnUpdate implements intdataplane.Manager.
func (b *blockList) OnUpdate(msg any) {
	if m, ok := msg.(*block); ok {
		b.add = append(b.add, table.Member{Net: netip.PrefixFrom(m.addr, m.addr.BitLen())})
	}
}

// CompleteDeferredWork implements intdataplane.Manager.
func (b *blockList) CompleteDeferredWork() error {
	if !b.begun {
		if err := b.begin(); err != nil {
			return err
		}
		b.begun = true
	}
	if err := b.tables.ChangeSet("blocked", b.add, nil); err != nil {
		return err
	}
	b.add = nil
	return nil
}

// begin creates the set and the rule that drops packets from its members, before any other rule of the driver.
func (b *blockList) begin() error {
	if err := b.tables.ReplaceSet(table.Set{ID: "blocked", Type: table.SetIP}, nil); err != nil {
		return err
	}
	return b.tables.SetHook(table.Filter, table.Forward, table.Rule{
		Match: table.Match{SrcSets: []string{"blocked"}}, Actions: []table.Action{{Verb: table.Drop}}, Comment: "block list",
	})
}
