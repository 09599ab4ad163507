package intdataplane

import (
	"fmt"
	"log/slog"
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// masqManager maintains the sets of pools, and the chain that masquerades. The chain is empty unless a pool needs it.
type masqManager struct {
	family table.Family
	render rules.RuleRenderer
	sets   setSink
	chains chainSink
	log    *slog.Logger

	pools map[string]pool
	dirty bool
}

type pool struct {
	net  netip.Prefix
	masq bool
}

func newMasqManager(f table.Family, render rules.RuleRenderer, sets setSink, chains chainSink, log *slog.Logger) *masqManager {
	return &masqManager{family: f, render: render, sets: sets, chains: chains, log: log, pools: map[string]pool{}, dirty: true}
}

// OnUpdate takes *proto.IPAMPoolUpdate and *proto.IPAMPoolRemove.
func (m *masqManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.IPAMPoolUpdate:
		if err := m.setPool(msg); err != nil {
			m.log.Error("IP pool is ignored", "pool", msg.GetId(), "error", err)
		}
	case *proto.IPAMPoolRemove:
		if _, known := m.pools[msg.GetId()]; known {
			delete(m.pools, msg.GetId())
			m.dirty = true
		}
	}
}

func (m *masqManager) setPool(msg *proto.IPAMPoolUpdate) error {
	if _, known := m.pools[msg.GetId()]; known {
		delete(m.pools, msg.GetId()) // also if its family has changed
		m.dirty = true
	}
	net, err := rules.ParseNet(msg.GetPool().GetCidr())
	if err != nil {
		return fmt.Errorf("CIDR %q: %w", msg.GetPool().GetCidr(), err)
	}
	if familyOf(net.Addr()) == m.family {
		m.pools[msg.GetId()] = pool{net: net, masq: msg.GetPool().GetMasquerade()}
		m.dirty = true
	}
	return nil
}

// CompleteDeferredWork replaces both sets and the chain.
func (m *masqManager) CompleteDeferredWork() error {
	if !m.dirty {
		return nil
	}
	m.dirty = false
	var all, masq []table.Member
	for _, p := range m.pools {
		all = append(all, table.Member{Net: p.net})
		if p.masq {
			masq = append(masq, table.Member{Net: p.net})
		}
	}
	m.sets.ReplaceSet(m.family, table.Set{ID: rules.SetAllPools, Type: table.SetNet}, unique(all))
	m.sets.ReplaceSet(m.family, table.Set{ID: rules.SetMasqPools, Type: table.SetNet}, unique(masq))
	m.chains.SetChains(m.family, table.NAT, m.render.NATOutgoing(len(masq) > 0))
	return nil
}
