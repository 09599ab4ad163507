package feed

import (
	"fmt"
	"strings"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/scheduler"
)

// The ranks order objects before the objects that refer to them. The links of pods come up (scheduler.RankPodLink) after the driver has
// received everything that concerns the pods.
//
// All policy values that a transaction creates or changes are in one wave, so that the driver applies them together; orderOf sorts them. The
// deletes of sets, members, policies and profiles are a second wave. An endpoint is in a later wave than its own policy.
const (
	rankPolicy = scheduler.RankTable
	rankRoute  = scheduler.RankRoute
	rankPod    = scheduler.RankFeature
	rankSynced = scheduler.RankFeature + 5
	rankUp     = scheduler.RankPodRoute + 1
)

// upKind is the name of the descriptor of the derived items.
const upKind = "driver-workload-up"

// upKey is the key of the item workload-up of an endpoint.
func upKey(id *proto.WorkloadEndpointID) string {
	return nb.DriverWorkloadUpState + strings.TrimPrefix(nb.DriverWorkloadKey(id), nb.DriverWorkloadPrefix)
}

// kind is the descriptor of one type of messages; remove returns the message that removes a value.
type kind struct {
	name, prefix string
	rank         int
	remove       func(m pb.Message) any
	// last removes values after the creates and updates of a transaction: a pod that moves from one set to another is always in one of them. Otherwise
	// its connections would end, or rules that deny would not match its packets, until the second wave has been applied.
	last bool
}

// policyKinds returns the kinds of objects that rules and endpoints refer to.
func policyKinds() []kind {
	kinds := []kind{
		{name: "driver-ip-set", prefix: nb.DriverIPSetPrefix, remove: func(m pb.Message) any {
			return &proto.IPSetRemove{Id: m.(*proto.IPSetUpdate).GetId()}
		}},
		{name: "driver-ip-set-member", prefix: nb.DriverSetMemberPrefix, remove: func(m pb.Message) any { return m }},
		{name: "driver-profile", prefix: nb.DriverProfilePrefix, remove: func(m pb.Message) any {
			return &proto.ActiveProfileRemove{Id: m.(*proto.ActiveProfileUpdate).GetId()}
		}},
		{name: "driver-policy", prefix: nb.DriverPolicyPrefix, remove: func(m pb.Message) any {
			return &proto.ActivePolicyRemove{Id: m.(*proto.ActivePolicyUpdate).GetId()}
		}},
	}
	for i := range kinds {
		kinds[i].rank, kinds[i].last = rankPolicy, true
	}
	return kinds
}

func kinds() []kind {
	return append(policyKinds(), []kind{
		{name: "driver-workload-policy", prefix: nb.DriverWorkloadPolicyPrefix, rank: rankPolicy, remove: func(m pb.Message) any { return m }},
		{name: "driver-host", prefix: nb.DriverHostPrefix, rank: rankPolicy, remove: func(m pb.Message) any {
			return &proto.HostMetadataRemove{Hostname: m.(*proto.HostMetadataUpdate).GetHostname()}
		}},
		{name: "driver-pool", prefix: nb.DriverPoolPrefix, rank: rankPolicy, remove: func(m pb.Message) any {
			return &proto.IPAMPoolRemove{Id: m.(*proto.IPAMPoolUpdate).GetId()}
		}},
		{name: "driver-vtep", prefix: nb.DriverVTEPPrefix, rank: rankPolicy, remove: func(m pb.Message) any {
			return &proto.VXLANTunnelEndpointRemove{Node: m.(*proto.VXLANTunnelEndpointUpdate).GetNode()}
		}},
		{name: "driver-route", prefix: nb.DriverRoutePrefix, rank: rankRoute, remove: func(m pb.Message) any {
			return &proto.RouteRemove{Dst: m.(*proto.RouteUpdate).GetDst()}
		}},
		{name: "driver-service", prefix: nb.DriverServicePrefix, rank: rankPolicy, remove: func(m pb.Message) any {
			s := m.(*proto.BalancedServiceUpdate)
			return &proto.BalancedServiceRemove{Namespace: s.GetNamespace(), Name: s.GetName()}
		}},
		{name: "driver-in-sync", prefix: nb.DriverInSyncKey, rank: rankSynced, remove: func(pb.Message) any { return nil }},
	}...)
}

// Register adds the descriptors of the driver's messages to a scheduler that has f as a backend.
func Register(s *scheduler.Scheduler, f *Feed) error {
	for _, k := range kinds() {
		if f.cfg.NoServices && k.prefix == nb.DriverServicePrefix {
			continue
		}
		if err := scheduler.Register(s, f.descriptor(k)); err != nil {
			return fmt.Errorf("register %s: %w", k.name, err)
		}
	}
	workload := f.descriptor(kind{name: "driver-workload", prefix: nb.DriverWorkloadPrefix, rank: rankPod, remove: func(m pb.Message) any {
		return &proto.WorkloadEndpointRemove{Id: m.(*proto.WorkloadEndpointUpdate).GetId()}
	}})
	dump := workload.Dump
	workload.Dump = func(op *scheduler.DumpOp, emit func(key string, m pb.Message)) {
		// A dump must report the state of the kernel: the driver compares it with its own state and repairs differences.
		if f.synced.Load() {
			if err := f.refresh(op.Context()); err != nil {
				op.Done(fmt.Errorf("compare with the kernel: %w", err))
				return
			}
		}
		dump(op, emit)
	}
	workload.Derive = func(_ string, m pb.Message, put func(kind, itemKey string, item any)) {
		id := m.(*proto.WorkloadEndpointUpdate).GetId()
		put(upKind, upKey(id), id)
	}
	workload.Deps = func(_ string, m pb.Message, add func(dep string)) {
		add(nb.DriverWorkloadPolicyKey(m.(*proto.WorkloadEndpointUpdate).GetId()))
	}
	if err := scheduler.Register(s, workload); err != nil {
		return fmt.Errorf("register endpoints: %w", err)
	}
	if err := scheduler.Register(s, f.upDescriptor()); err != nil {
		return fmt.Errorf("register the state of endpoints: %w", err)
	}
	return nil
}

// orderOf returns the position of a descriptor among the descriptors of its wave.
func orderOf(prefix string) int {
	switch prefix {
	case nb.DriverIPSetPrefix:
		return 1
	case nb.DriverSetMemberPrefix:
		return 2
	case nb.DriverWorkloadPolicyPrefix:
		return 4
	}
	return 3
}

func (f *Feed) descriptor(k kind) scheduler.Descriptor[pb.Message] {
	report := func(op *scheduler.Op, key string, m pb.Message) {
		f.ops = append(f.ops, queued{op: op, key: key, msg: m, out: m, order: orderOf(k.prefix)})
	}
	return scheduler.Descriptor[pb.Message]{
		Name: k.name, Prefix: k.prefix, Rank: k.rank, DeleteLast: k.last,
		Equal:  func(_ string, desired, applied pb.Message) bool { return pb.Equal(desired, applied) },
		Create: report,
		Update: func(op *scheduler.Op, key string, _, desired pb.Message) { report(op, key, desired) },
		Delete: func(op *scheduler.Op, key string, m pb.Message) {
			out := k.remove(m)
			if out == nil {
				op.Done(nil) // InSync cannot be withdrawn
				return
			}
			f.ops = append(f.ops, queued{op: op, key: key, out: out, order: -orderOf(k.prefix)})
		},
		Dump: func(op *scheduler.DumpOp, emit func(key string, m pb.Message)) {
			for key, m := range f.reported {
				if strings.HasPrefix(key, k.prefix) {
					emit(key, m)
				}
			}
			op.Done(nil)
		},
	}
}

// upDescriptor returns the descriptor of the item that is present when the endpoint is up.
func (f *Feed) upDescriptor() scheduler.Descriptor[*proto.WorkloadEndpointID] {
	return scheduler.Descriptor[*proto.WorkloadEndpointID]{
		Name: upKind, Rank: rankUp, ImpliedByParent: true,
		Equal: func(string, *proto.WorkloadEndpointID, *proto.WorkloadEndpointID) bool { return true },
		Deps: func(_ string, id *proto.WorkloadEndpointID, add func(dep string)) {
			if f.cfg.LinkKey != nil {
				add(f.cfg.LinkKey(id))
			}
		},
		Create: func(op *scheduler.Op, key string, id *proto.WorkloadEndpointID) {
			f.ups = append(f.ups, waiting{op: op, key: key, id: id})
		},
		Delete: func(op *scheduler.Op, _ string, _ *proto.WorkloadEndpointID) { op.Done(nil) },
		Dump: func(op *scheduler.DumpOp, emit func(key string, id *proto.WorkloadEndpointID)) {
			for key, m := range f.reported {
				if ep, ok := m.(*proto.WorkloadEndpointUpdate); ok && strings.HasPrefix(key, nb.DriverWorkloadPrefix) {
					status, _ := f.statusOf(upKey(ep.GetId()))
					if up, _ := f.up(ep.GetId(), status); up {
						emit(upKey(ep.GetId()), ep.GetId())
					}
				}
			}
			op.Done(nil)
		},
	}
}
