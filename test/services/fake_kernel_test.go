package services

import (
	"fmt"
	"net"
	"net/netip"
	"sync"

	"google.golang.org/protobuf/proto"

	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	linux_namespace "contiv.dev/vswitch/dataplane/nb/linux/namespace"
	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/test/testbed/stack"
)

// fakeKernel is the fake of a node's Linux kernel: it turns the values that the agent configures into links, routes and
// neighbours of the host's stack and of those of pods. It keeps its state when agents restart.
type fakeKernel struct {
	host *stack.Stack

	mu     sync.Mutex               // guards the fields below
	values map[string]proto.Message // by key
	places map[string]fakePlace     // by the logical name of a device
	taps   map[string]fakePlace     // by the logical name of VPP's end
	pods   map[string]*stack.Stack  // by network namespace
	writes int                      // number of writes since the last restart of the agent
}

// fakePlace is a device of a stack, and VPP's end of it.
type fakePlace struct {
	*stack.Stack
	device, vpp string
}

func newFakeKernel(host *stack.Stack) *fakeKernel {
	return &fakeKernel{
		host: host, values: map[string]proto.Message{}, places: map[string]fakePlace{}, taps: map[string]fakePlace{},
		pods: map[string]*stack.Stack{},
	}
}

// register registers the kinds of Linux with a scheduler.
func (k *fakeKernel) register(s *scheduler.Scheduler) error {
	for _, add := range []func() error{
		func() error {
			return putKind[*linux_interfaces.Interface](s, k, "linux-interface", nb.LinuxInterfacePrefix, scheduler.RankHostLink)
		},
		func() error {
			return putKind[*linux_l3.ARPEntry](s, k, "linux-arp", nb.LinuxARPPrefix, scheduler.RankPodRoute)
		},
		func() error {
			return putKind[*linux_l3.Route](s, k, "linux-route", nb.LinuxRoutePrefix, scheduler.RankPodRoute)
		},
		func() error {
			return putKind[*linux_nodeports.NodePorts](s, k, "linux-node-ports", nb.NodePortsPrefix, scheduler.RankPodRoute)
		},
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

func putKind[V proto.Message](s *scheduler.Scheduler, k *fakeKernel, name, prefix string, rank int) error {
	return scheduler.Register(s, scheduler.Descriptor[V]{
		Name: name, Prefix: prefix, Rank: rank,
		Equal:  func(_ string, a, b V) bool { return proto.Equal(a, b) },
		Create: func(op *scheduler.Op, key string, v V) { op.Done(k.set(key, v, true)) },
		Delete: func(op *scheduler.Op, key string, v V) { op.Done(k.set(key, v, false)) },
		Dump: func(op *scheduler.DumpOp, emit func(string, V)) {
			k.mu.Lock()
			defer k.mu.Unlock()
			for key, m := range k.values {
				if v, ok := m.(V); ok {
					emit(key, v)
				}
			}
			op.Done(nil)
		},
	})
}

// set creates a value, or removes it.
func (k *fakeKernel) set(key string, value proto.Message, there bool) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writes++
	switch v := value.(type) {
	case *linux_interfaces.Interface:
		err = k.setLinkLocked(v, there)
	case *linux_l3.ARPEntry:
		err = k.setNeighborLocked(v, there)
	case *linux_l3.Route:
		err = k.setRouteLocked(key, v, there)
	case *linux_nodeports.NodePorts:
		k.setNodePorts(v, there)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if there {
		k.values[key] = value
	} else {
		delete(k.values, key)
	}
	return nil
}

func (k *fakeKernel) setNodePorts(v *linux_nodeports.NodePorts, there bool) {
	if !there {
		k.host.SetPorts(v.Family == linux_nodeports.Family_IPV6, nil)
		return
	}
	k.host.SetPorts(v.Family == linux_nodeports.Family_IPV6, v)
}

func (k *fakeKernel) setLinkLocked(v *linux_interfaces.Interface, there bool) error {
	tap := v.GetTap()
	if tap == nil {
		return nil // lo
	}
	place := fakePlace{Stack: k.stackLocked(v.Namespace), device: v.HostIfName, vpp: tap.VppTapIfName}
	if !there {
		place.DeleteLink(place.device)
		delete(k.places, v.Name)
		delete(k.taps, place.vpp)
		return nil
	}
	link := stack.Link{Device: v.HostIfName}
	mac, err := net.ParseMAC(v.PhysAddress)
	if err != nil {
		return err
	}
	link.MAC = vppfake.MAC(mac)
	for _, text := range v.IpAddresses {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return err
		}
		link.Addrs = append(link.Addrs, p)
	}
	place.SetLink(link)
	k.places[v.Name], k.taps[place.vpp] = place, place
	return nil
}

func (k *fakeKernel) setNeighborLocked(v *linux_l3.ARPEntry, there bool) error {
	place, ok := k.places[v.Interface]
	if !ok && there {
		return fmt.Errorf("there is no %s", v.Interface)
	} else if !ok {
		return nil // its device has been removed
	}
	addr, err := netip.ParseAddr(v.IpAddress)
	if err != nil {
		return err
	}
	var mac vppfake.MAC
	if there {
		hw, err := net.ParseMAC(v.HwAddress)
		if err != nil {
			return err
		}
		mac = vppfake.MAC(hw)
	}
	place.SetNeighbor(place.device, addr, mac)
	return nil
}

func (k *fakeKernel) setRouteLocked(key string, v *linux_l3.Route, there bool) error {
	place, ok := k.places[v.OutgoingInterface]
	switch {
	case !ok && there:
		return fmt.Errorf("there is no %s", v.OutgoingInterface)
	case !ok:
		return nil
	case !there:
		place.DeleteRoute(key)
		return nil
	}
	r := stack.Route{Device: place.device}
	var err error
	if r.Dst, err = netip.ParsePrefix(v.DstNetwork); err != nil {
		return err
	}
	if v.GwAddr != "" {
		if r.Via, err = netip.ParseAddr(v.GwAddr); err != nil {
			return err
		}
	}
	place.SetRoute(key, r)
	return nil
}

func (k *fakeKernel) stackLocked(ns *linux_namespace.NetNamespace) *stack.Stack {
	if ns == nil {
		return k.host
	}
	if k.pods[ns.Reference] == nil {
		k.pods[ns.Reference] = stack.New(ns.Reference)
	}
	return k.pods[ns.Reference]
}

// device returns the device with a logical name.
func (k *fakeKernel) device(logical string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	place, ok := k.places[logical]
	return place.device, ok
}

// tap returns the Linux end of a TAP.
func (k *fakeKernel) tap(vppIf string) (fakePlace, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	place, ok := k.taps[vppIf]
	return place, ok
}

// behind returns VPP's end of a device.
func (k *fakeKernel) behind(s *stack.Stack, device string) (vppIf string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, place := range k.taps {
		if place.Stack == s && place.device == device {
			return place.vpp, true
		}
	}
	return "", false
}

// pod returns the stack of a network namespace.
func (k *fakeKernel) pod(netns string) *stack.Stack {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stackLocked(&linux_namespace.NetNamespace{Reference: netns})
}

// written returns the number of values that were written since restarted was called.
func (k *fakeKernel) written() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writes
}

func (k *fakeKernel) restarted() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writes = 0
}
