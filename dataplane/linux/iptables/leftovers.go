package iptables

import (
	"context"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/ipset"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// Leftovers removes the objects of earlier processes; nothing is desired.
type Leftovers interface {
	Name() string
	Apply(ctx context.Context) table.Result
	Close() error
}

// OpenLeftovers opens the kernel's state for a process that uses another backend. If the kernel has no table of iptables, only sets can be
// left, and no program is started.
func OpenLeftovers(ctx context.Context, cfg Config) (Leftovers, error) {
	r := system{cfg.NS}
	if !noTables(r) || !r.has("iptables") {
		return New(ctx, cfg)
	}
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	sets, err := ipset.New(ipset.Config{NS: cfg.NS, Log: cfg.Log, Now: cfg.Clock.Now})
	if err != nil {
		return nil, err
	}
	return &setsOnly{Backend{sets: sets}}, nil
}

// noTables reports whether the kernel has no table of either variant in either family.
func noTables(r runner) bool {
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		for _, v := range []Variant{VariantNFT, VariantLegacy} {
			tables, known := existing(r, v, f)
			if !known || slices.ContainsFunc(layerNames[:], func(l layerName) bool { return tables[l] }) {
				return false
			}
		}
	}
	return true
}

// setsOnly is a Backend without layers.
type setsOnly struct{ Backend }

// Apply removes sets.
func (s *setsOnly) Apply(context.Context) table.Result {
	var res table.Result
	if s.addSets(&res, s.sets.ApplyUpdates()); res.Err == nil {
		s.addSets(&res, s.sets.ApplyDestroys())
	}
	return res
}
