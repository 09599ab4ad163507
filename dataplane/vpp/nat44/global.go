package nat44

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/binapi/vlib"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// Settings holds the settings for which the northbound model has no fields. Zero values mean VPP's defaults.
type Settings struct {
	// Sessions is the maximum number of sessions, for each of VPP's workers. It is applied when NAT is enabled: a VPP that already has
	// NAT enabled keeps its number. With forwarding every flow that passes a NAT interface is a session, translated or not.
	Sessions uint32
	// Timeouts in seconds: idle time after which VPP may delete a session.
	UDP, TCPEstablished, TCPTransitory, ICMP uint32
	// ClusterIPs lists networks whose addresses have no ports except those of services.
	ClusterIPs []netip.Prefix
}

func (s *Settings) setDefaults() {
	def := func(n *uint32, to uint32) {
		if *n == 0 {
			*n = to
		}
	}
	def(&s.Sessions, 63*1024)
	def(&s.UDP, 300)
	def(&s.TCPEstablished, 7440)
	def(&s.TCPTransitory, 240)
	def(&s.ICMP, 60)
}

// natState is the state of VPP that the descriptors of NAT keep. A dump restores all of it.
type natState struct {
	// places holds the backends of the balanced mappings in VPP's order, by key: with affinity VPP stores a client's backend by its
	// index.
	places map[string][]natBackend
	// handoff: VPP has several workers and hands packets over to the worker that has their session.
	handoff bool
	// worker: packets are handled by another thread than the one that carries out requests.
	worker bool
	// inAndOut holds the interfaces with both roles that VPP itself has as inside and outside; see natInterfaceDescriptor.
	inAndOut map[string]bool
	// warned: VPP has another limit of sessions, and the log already reports it.
	warned bool
}

// natTimeouts holds timeouts in seconds.
type natTimeouts struct{ UDP, TCPEstablished, TCPTransitory, ICMP uint32 }

const (
	kindNATTimeouts = "vpp-nat44-timeouts"
	natTimeoutsKey  = "vpp/nat44/timeouts"
)

// natGlobalDescriptor enables NAT44 (endpoint-dependent), and disables it after all other NAT objects have been deleted.
func (k *descriptors) natGlobalDescriptor() scheduler.Descriptor[*vpp_nat.Nat44Global] {
	return scheduler.Descriptor[*vpp_nat.Nat44Global]{
		Name: "vpp-nat44-global", Prefix: nb.Nat44GlobalKey, Rank: scheduler.RankFeature,
		Validate: func(_ string, v *vpp_nat.Nat44Global) error { return validateNATGlobal(v) },
		Equal: func(_ string, desired, applied *vpp_nat.Nat44Global) bool {
			return desired.Forwarding == applied.Forwarding
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_nat.Nat44Global) {
			both := kit.Join(2, op.Done)
			on := &nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: k.settings.Sessions}
			k.Send(natObject("enable"), on, both, api.FEATURE_ALREADY_ENABLED)
			k.Send(natObject("set forwarding of"), &nat44_ed.Nat44ForwardingEnableDisable{Enable: v.Forwarding}, both)
		},
		Update: func(op *scheduler.Op, _ string, _, v *vpp_nat.Nat44Global) {
			k.Do(op, natObject("set forwarding of"), &nat44_ed.Nat44ForwardingEnableDisable{Enable: v.Forwarding})
		},
		Delete: func(op *scheduler.Op, _ string, _ *vpp_nat.Nat44Global) { k.disableNAT(op) },
		Derive: func(_ string, _ *vpp_nat.Nat44Global, put func(string, string, any)) {
			s := k.settings
			put(kindNATTimeouts, natTimeoutsKey, natTimeouts{s.UDP, s.TCPEstablished, s.TCPTransitory, s.ICMP})
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_nat.Nat44Global)) {
			k.natConfig(func(c *nat44_ed.Nat44ShowRunningConfigReply, err error) {
				if err == nil && c.Sessions != 0 {
					emit(nb.Nat44GlobalKey, &vpp_nat.Nat44Global{Forwarding: c.ForwardingEnabled})
				}
				op.Done(err)
			})
		},
	}
}

func natObject(what string) kit.Object { return kit.Named(what, "NAT44") }

func validateNATGlobal(v *vpp_nat.Nat44Global) error {
	var f kit.Faults
	if v.EndpointIndependent {
		f.Add("endpoint_independent", "is not supported: services need NAT that depends on the endpoint")
	}
	if len(v.NatInterfaces) > 0 {
		f.Add("nat_interfaces", "is superseded: configure a Nat44Interface for each")
	}
	if len(v.AddressPool) > 0 {
		f.Add("address_pool", "is superseded: configure a Nat44AddressPool")
	}
	if v.VirtualReassembly != nil {
		f.Add("virtual_reassembly", "cannot be set: VPP 25.10 has no such settings for NAT alone")
	}
	return f.Err()
}

// natConfig queries whether NAT is enabled (its sessions are not 0), and its configuration.
func (k *descriptors) natConfig(done func(*nat44_ed.Nat44ShowRunningConfigReply, error)) {
	workers := 0
	var config *nat44_ed.Nat44ShowRunningConfigReply
	all := kit.Join(3, func(err error) {
		if err != nil {
			done(nil, fmt.Errorf("vpp: dump NAT44: %w", err))
			return
		}
		k.nat.handoff = workers > 0 // VPP lists them only if there are several
		if want := k.settings.Sessions; config.Sessions != 0 && config.Sessions != want && !k.nat.warned {
			k.nat.warned = true
			k.Log.Warn("the limit of NAT sessions in VPP differs from the configuration; restart VPP to apply the configured limit",
				"limit", config.Sessions, "configured", want)
		}
		done(config, nil)
	})
	conn.Call(k.Lane, &nat44_ed.Nat44ShowRunningConfig{}, func(r *nat44_ed.Nat44ShowRunningConfigReply, err error) {
		config = r
		all(err)
	})
	conn.Call(k.Lane, &vlib.ShowThreads{}, func(r *vlib.ShowThreadsReply, err error) {
		k.nat.worker = err == nil && r.Count > 1
		all(err)
	})
	conn.Dump(k.Lane, &nat44_ed.NatWorkerDump{}, func(*nat44_ed.NatWorkerDetails) { workers++ }, all)
}

// disableNAT disables NAT. VPP 25.10 must not disable NAT as long as there are balanced mappings: for each of them it releases table 0
// once without having held it, and frees the table when its count of holders is zero: then all packets are lost. Our mappings are deleted
// by now; those of another program are left, and so NAT stays enabled.
func (k *descriptors) disableNAT(op *scheduler.Op) {
	left := 0
	conn.Dump(k.Lane, &nat44_ed.Nat44LbStaticMappingDump{}, func(*nat44_ed.Nat44LbStaticMappingDetails) { left++ },
		func(err error) {
			if err == nil && left > 0 {
				err = fmt.Errorf("other programs have %d static mappings with several backends, and VPP would free its default table with them; "+
					"delete them first (vppctl show nat44 static mappings)", left)
			}
			if err != nil {
				op.Done(natObject("disable").Wrap(err))
				return
			}
			k.nat.places, k.nat.inAndOut = map[string][]natBackend{}, map[string]bool{}
			k.Do(op, natObject("disable"), &nat44_ed.Nat44EdPluginEnableDisable{}, api.FEATURE_ALREADY_DISABLED)
		})
}

// natTimeoutsDescriptor returns the descriptor of timeouts: VPP sets its defaults when NAT is enabled.
func (k *descriptors) natTimeoutsDescriptor() scheduler.Descriptor[natTimeouts] {
	set := func(op *scheduler.Op, v natTimeouts) {
		k.Do(op, natObject("set the timeouts of"), &nat44_ed.NatSetTimeouts{
			UDP: v.UDP, TCPEstablished: v.TCPEstablished, TCPTransitory: v.TCPTransitory, ICMP: v.ICMP,
		})
	}
	desc := kit.Item[natTimeouts](kindNATTimeouts, scheduler.RankFeature)
	desc.Parent = func(string, natTimeouts) string { return nb.Nat44GlobalKey }
	desc.Create = func(op *scheduler.Op, _ string, v natTimeouts) { set(op, v) }
	desc.Update = func(op *scheduler.Op, _ string, _, v natTimeouts) { set(op, v) }
	desc.Delete = func(op *scheduler.Op, _ string, _ natTimeouts) { op.Done(nil) } // VPP drops them with NAT
	desc.Dump = func(op *scheduler.DumpOp, emit func(string, natTimeouts)) {
		k.natConfig(func(c *nat44_ed.Nat44ShowRunningConfigReply, err error) {
			if err == nil && c.Sessions != 0 {
				emit(natTimeoutsKey, timeoutsOf(c.Timeouts))
			}
			op.Done(err)
		})
	}
	return desc
}

func timeoutsOf(t nat_types.NatTimeouts) natTimeouts {
	return natTimeouts{t.UDP, t.TCPEstablished, t.TCPTransitory, t.ICMP}
}
