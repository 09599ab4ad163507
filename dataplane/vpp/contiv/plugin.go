package contiv

import (
	"errors"
	"slices"

	"go.fd.io/govpp/api"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// What our own plugin has is ours: its objects have no owner but us. The kinds follow dataplane/vpp/plugin/contiv.api; a VPP without
// the plugin has nothing of them, and refuses them.

// Ranks of what the plugin has: no frontend comes before the services, sources and networks that it is about.
const (
	rankContiv         = scheduler.RankFeature
	rankContivFrontend = scheduler.RankFeature + 2
	rankContivPolicy   = scheduler.RankFeature + 2 // behind sets and their members; endpoints' policies are one higher
)

// Messages are all requests for our own plugin, which a VPP need not have.
func Messages() []api.Message {
	return []api.Message{
		&contiv.ContivConfigSet{}, &contiv.ContivConfigGet{},
		&contiv.ContivEndpointSet{}, &contiv.ContivEndpointDel{}, &contiv.ContivEndpointDump{},
		&contiv.ContivNetworkAddDel{}, &contiv.ContivNetworkDump{},
		&contiv.ContivSnatAddDel{}, &contiv.ContivSnatDump{},
		&contiv.ContivServiceAddDel{}, &contiv.ContivServiceDump{},
		&contiv.ContivBackendAddDel{}, &contiv.ContivBackendDump{},
		&contiv.ContivFrontendAddDel{}, &contiv.ContivFrontendDump{},
		&contiv.ContivRangeAddDel{}, &contiv.ContivRangeDump{},
		&contiv.ContivSetAddDel{}, &contiv.ContivSetDump{}, &contiv.ContivSetMemberAddDel{}, &contiv.ContivSetMemberDump{},
		&contiv.ContivPolicySet{}, &contiv.ContivPolicyDel{}, &contiv.ContivPolicyDump{},
		&contiv.ContivEndpointPolicySet{}, &contiv.ContivEndpointPolicyDel{}, &contiv.ContivEndpointPolicyDump{},
		&contiv.ContivDeniedGet{},
		&contiv.ContivConnectionGet{}, &contiv.ContivConnectionDel{}, &contiv.ContivStatsGet{},
	}
}

func (k *kinds) register(s *scheduler.Scheduler) error {
	return errors.Join(
		scheduler.Register(s, k.contivConfigKind()),
		scheduler.Register(s, k.contivEndpointKind()),
		scheduler.Register(s, k.contivNetworkKind()),
		scheduler.Register(s, k.contivSourceNATKind()),
		scheduler.Register(s, k.contivServiceKind()),
		scheduler.Register(s, k.contivBackendKind()),
		scheduler.Register(s, k.contivFrontendKind()),
		scheduler.Register(s, k.contivRangeSetKind()),
		scheduler.Register(s, k.contivRangeKind()),
		scheduler.Register(s, k.contivIPSetKind()),
		scheduler.Register(s, k.contivIPSetMemberKind()),
		scheduler.Register(s, k.contivPolicyKind()),
		scheduler.Register(s, k.contivEndpointPolicyKind()),
	)
}

// contivName is a name as the plugin keeps it.
func contivName(name string) string { return kit.ShortName(name, "") }

// dumpContiv is conn.Dump of what a VPP without the plugin has none of.
func dumpContiv[D api.Message](k *kinds, op *scheduler.DumpOp, what string, req api.Message, each func(D)) {
	conn.Dump(k.Lane, req, each, func(err error) { endContivDump(op, what, err) })
}

func endContivDump(op *scheduler.DumpOp, what string, err error) {
	if errors.Is(err, conn.ErrUnknownMessage) {
		err = nil
	}
	op.Done(kit.Named("dump", what).Wrap(err))
}

// sameSet compares two lists that have no order.
func sameSet(a, b []string, read func(string) string) bool {
	norm := func(list []string) []string {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = read(s)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(a, b) || slices.Equal(norm(a), norm(b))
}
