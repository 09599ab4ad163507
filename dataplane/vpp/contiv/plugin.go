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

// All objects of our own plugin are ours: no other program creates any. The descriptors follow dataplane/vpp/plugin/contiv.api; a VPP
// without the plugin has none of the objects, and rejects them.

// Ranks of the plugin's objects: a frontend is created after the services, sources and networks that it refers to.
const (
	rankContiv         = scheduler.RankFeature
	rankContivFrontend = scheduler.RankFeature + 2
	rankContivPolicy   = scheduler.RankFeature + 2 // after sets and their members; endpoints' policies are one rank higher
)

// Messages returns all requests for our own plugin. VPP need not have them.
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

func (k *descriptors) register(s *scheduler.Scheduler) error {
	return errors.Join(
		scheduler.Register(s, k.contivConfigDescriptor()),
		scheduler.Register(s, k.contivEndpointDescriptor()),
		scheduler.Register(s, k.contivNetworkDescriptor()),
		scheduler.Register(s, k.contivSourceNATDescriptor()),
		scheduler.Register(s, k.contivServiceDescriptor()),
		scheduler.Register(s, k.contivBackendDescriptor()),
		scheduler.Register(s, k.contivFrontendDescriptor()),
		scheduler.Register(s, k.contivRangeSetDescriptor()),
		scheduler.Register(s, k.contivRangeDescriptor()),
		scheduler.Register(s, k.contivIPSetDescriptor()),
		scheduler.Register(s, k.contivIPSetMemberDescriptor()),
		scheduler.Register(s, k.contivPolicyDescriptor()),
		scheduler.Register(s, k.contivEndpointPolicyDescriptor()),
	)
}

// contivName returns a name in the form that the plugin stores.
func contivName(name string) string { return kit.ShortName(name, "") }

// dumpContiv is conn.Dump for objects of which a VPP without the plugin has none.
func dumpContiv[D api.Message](k *descriptors, op *scheduler.DumpOp, what string, req api.Message, each func(D)) {
	conn.Dump(k.Lane, req, each, func(err error) { endContivDump(op, what, err) })
}

func endContivDump(op *scheduler.DumpOp, what string, err error) {
	if errors.Is(err, conn.ErrUnknownMessage) {
		err = nil
	}
	op.Done(kit.Named("dump", what).Wrap(err))
}

// sameSet compares two lists whose order does not matter.
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
