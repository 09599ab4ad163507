package conn

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"
)

// guarded are the requests that neverSend looks at.
func guarded() []api.Message {
	return []api.Message{
		new(cnat.CnatTranslationUpdate), new(sr.SrPolicyAdd), new(sr.SrPolicyAddV2), new(sr.SrPolicyMod), new(sr.SrPolicyModV2),
	}
}

// neverSend refuses the requests that make VPP 25.10 abort (all seen to). Descriptors validate their values before; this
// is the last line of defence, since one such request takes the node's whole network down.
func neverSend(req api.Message) error {
	switch m := req.(type) {
	case *cnat.CnatTranslationUpdate:
		if len(m.Translation.Paths) == 0 {
			return fmt.Errorf("%w: a cnat translation needs a path", ErrNeverSend)
		}
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

func checkSids(list sr.Srv6SidList) error {
	if n := int(list.NumSids); n == 0 || n > len(list.Sids) {
		return fmt.Errorf("%w: an SRv6 policy needs 1 to %d segments, not %d", ErrNeverSend, len(list.Sids), n)
	}
	return nil
}
