package conn

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"
)

// guarded lists the requests that neverSend checks.
func guarded() []api.Message {
	return []api.Message{
		new(cnat.CnatTranslationUpdate), new(sr.SrPolicyAdd), new(sr.SrPolicyAddV2), new(sr.SrPolicyMod), new(sr.SrPolicyModV2),
		new(nat44_ed.Nat44AddDelLbStaticMapping),
	}
}

// neverSend rejects the requests that make VPP 25.10 abort (each of them was observed). Descriptors validate their
// values before; this is the last check, since one such request takes down the whole network of the node.
func neverSend(req api.Message) error {
	switch m := req.(type) {
	case *cnat.CnatTranslationUpdate:
		if len(m.Translation.Paths) == 0 {
			return fmt.Errorf("%w: a cnat translation needs a path", errNeverSend)
		}
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		return checkLocals(m)
	case *sr.SrPolicyAdd:
		return checkSids(m.Sids)
	case *sr.SrPolicyAddV2:
		return checkSids(m.Sids)
	case *sr.SrPolicyMod:
		if m.Operation == sr_types.SR_POLICY_OP_API_ADD {
			return checkSids(m.Sids)
		}
	case *sr.SrPolicyModV2:
		if m.Operation == sr_types.SR_POLICY_OP_API_ADD {
			return checkSids(m.Sids)
		}
	}
	return nil
}

// checkLocals rejects backends that VPP cannot count: it counts backends, and adds up their weights, in eight bits. With
// more than 255 backends it loops until its memory is full; with a sum of 0 it divides by zero at the first packet.
func checkLocals(m *nat44_ed.Nat44AddDelLbStaticMapping) error {
	sum := 0
	for _, l := range m.Locals {
		sum += int(l.Probability)
	}
	switch {
	case len(m.Locals) > 255:
		return fmt.Errorf("%w: a NAT44 mapping with %d backends; VPP supports at most 255", errNeverSend, len(m.Locals))
	case m.IsAdd && len(m.Locals) > 0 && (sum == 0 || sum > 255):
		return fmt.Errorf("%w: a NAT44 mapping with weights of %d in all; VPP adds up 1 to 255", errNeverSend, sum)
	}
	return nil
}

func checkSids(list sr.Srv6SidList) error {
	if n := int(list.NumSids); n == 0 || n > len(list.Sids) {
		return fmt.Errorf("%w: an SRv6 policy needs 1 to %d segments, not %d", errNeverSend, len(list.Sids), n)
	}
	return nil
}
