package rulestest

import (
	"errors"
	"fmt"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// broken returns the desired objects that a kernel would reject.
func (f *Fake) broken() map[string]error {
	broken := map[string]error{}
	note := func(name string, err error) {
		if f.Break != nil && err == nil {
			err = f.Break(name)
		}
		if err != nil {
			broken[name] = err
		}
	}
	for k, v := range f.want.sets {
		note(setName(k), v.check(k.family))
	}
	for k, rules := range f.want.chains {
		note(chainName(k), f.checkRules(k, rules))
	}
	for k, d := range f.want.dispatches {
		err := f.checkRules(k, d.Default)
		for iface, chain := range d.Chains {
			if len(iface) > 15 {
				err = errors.Join(err, fmt.Errorf("interface name %q is too long", iface))
			}
			err = errors.Join(err, f.checkTarget(k, chain))
		}
		note(chainName(k), err)
	}
	for k, rules := range f.want.hooks {
		note("hook "+chainName(k), f.checkRules(key{k.family, k.layer, "hook"}, rules))
	}
	return broken
}

func (s set) check(f table.Family) error {
	if len(s.members) > s.Max {
		return fmt.Errorf("%d members, at most %d", len(s.members), s.Max)
	}
	for m := range s.members {
		if m.Net.Addr().Is4() != (f == table.IPv4) {
			return fmt.Errorf("member %v is of the other family", m.Net)
		}
		if s.Type != table.SetNet && !m.Net.IsSingleIP() {
			return fmt.Errorf("member %v is not an address", m.Net)
		}
		if (s.Type == table.SetIPAndPort) != (m.Port != 0) || m.Net != m.Net.Masked() {
			return fmt.Errorf("member %v does not fit type %d", m, s.Type)
		}
	}
	return nil
}

func (f *Fake) checkTarget(k key, chain string) error {
	target := key{k.family, k.layer, chain}
	_, isChain := f.want.chains[target]
	_, isDispatch := f.want.dispatches[target]
	if !isChain && !isDispatch {
		return fmt.Errorf("%s refers to chain %s, which is not there", chainName(k), chain)
	}
	return nil
}

func (f *Fake) checkRules(k key, rules []table.Rule) error {
	if len(k.name) > 28 {
		return fmt.Errorf("%s is longer than 28 characters", chainName(k))
	}
	var errs []error
	for _, r := range rules {
		for i, a := range r.Actions {
			if a.Verb == table.Jump || a.Verb == table.Goto {
				errs = append(errs, f.checkTarget(k, a.Chain))
			}
			if a.Verb > table.Log && i != len(r.Actions)-1 {
				errs = append(errs, fmt.Errorf("%s: %q ends the walk before its last action", chainName(k), ruleText(r)))
			}
			if a.Verb == table.NoTrack && k.layer != table.Raw {
				errs = append(errs, fmt.Errorf("%s: NOTRACK outside of raw", chainName(k)))
			}
			if isNAT := a.Verb >= table.DNAT; isNAT && k.layer != table.NAT {
				errs = append(errs, fmt.Errorf("%s: NAT outside of nat", chainName(k)))
			}
		}
		if len(r.Comment) > 100 {
			errs = append(errs, fmt.Errorf("%s: comment %q is too long", chainName(k), r.Comment))
		}
		errs = append(errs, f.checkMatch(k, r.Match))
	}
	return errors.Join(errs...)
}

func (f *Fake) checkMatch(k key, m table.Match) error {
	var errs []error
	need := func(ids []string, withPort bool) {
		for _, id := range ids {
			s, known := f.want.sets[setKey{k.family, id}]
			switch {
			case !known:
				errs = append(errs, fmt.Errorf("%s refers to set %s, which is not there", chainName(k), id))
			case (s.Type == table.SetIPAndPort) != withPort:
				errs = append(errs, fmt.Errorf("%s: set %s has type %d", chainName(k), id, s.Type))
			}
		}
	}
	for _, ids := range [][]string{m.SrcSets, m.DstSets, m.NotSrcSets, m.NotDstSets} {
		need(ids, false)
	}
	portSets := [][]string{m.SrcPortSets, m.DstPortSets, m.NotSrcPortSets, m.NotDstPortSets}
	ports := len(m.SrcPorts) + len(m.DstPorts) + len(m.NotSrcPorts) + len(m.NotDstPorts)
	for _, ids := range portSets { // the members of these sets include the protocol
		need(ids, true)
	}
	if ports > 0 && m.Protocol != 6 && m.Protocol != 17 && m.Protocol != 132 && m.Protocol != 136 && m.Protocol != 33 {
		errs = append(errs, fmt.Errorf("%s: ports with protocol %d", chainName(k), m.Protocol))
	}
	if (m.ICMP != nil || m.NotICMP != nil) && m.Protocol != 1 && m.Protocol != 58 {
		errs = append(errs, fmt.Errorf("%s: ICMP with protocol %d", chainName(k), m.Protocol))
	}
	if len(m.InIface) > 16 || len(m.OutIface) > 16 {
		errs = append(errs, fmt.Errorf("%s: interface name too long", chainName(k)))
	}
	return errors.Join(errs...)
}
