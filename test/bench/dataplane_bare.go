package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/core"

	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/lab"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
	"contiv.dev/vswitch/test/testbed/traffic"
)

// plug is the way in which VPP is connected.
type plug string

// The agent uses AF_PACKET with TPACKET v2, and TAPs with offloads only if VPP has our plugin (docs/adr/0013).
const (
	packetV3 plug = "AF_PACKET v3"
	packetV2 plug = "AF_PACKET v2"
	tapPlug  plug = "TAP"
	tapGSO   plug = "TAP with GSO"
	memif    plug = "memif"
	oneVPP   plug = "one VPP" // without a link
)

func (p plug) isTAP() bool { return p == tapPlug || p == tapGSO }

// bareSides are two VPPs without agents that route between two namespaces, each with its own connection to its namespace and
// to the other VPP; or one VPP between both. The product makes no memifs for pods, so memif is measured between the VPPs.
// These VPPs are without our plugin, so the benefit of GSO between TAPs is measured on one of them.
func bareSides(e *env) []turnSide {
	if !e.vpp {
		fmt.Println("   bare: left out: there is no VPP")
		return nil
	}
	var sides []turnSide
	for _, s := range []struct{ ends, link plug }{
		{packetV2, packetV2}, {packetV3, packetV3}, {tapPlug, packetV2}, {tapPlug, packetV3}, {tapPlug, memif},
		{packetV2, oneVPP}, {tapPlug, oneVPP}, {tapGSO, oneVPP},
	} {
		sides = append(sides, turnSide{
			name: fmt.Sprintf("%s, %s", s.ends, s.link), standIn: s.ends.isTAP() && !lab.HasVhostNet(),
			turn: func(ctx context.Context, add adder) error { return bareTurn(ctx, s.ends, s.link, add) },
		})
	}
	return sides
}

// bareWorld has nodes 0 and 1, and a namespace behind each.
type bareWorld struct {
	nodes, ends [2]*netns.Namespace
	vpps        [2]*vpptest.VPP
}

func bareTurn(ctx context.Context, ends, link plug, add adder) error {
	w := &bareWorld{}
	defer w.close(context.WithoutCancel(ctx))
	if err := w.build(ctx, ends, link); err != nil {
		return err
	}
	t := traffic.New()
	defer t.Close()
	if _, err := t.Serve(w.ends[1], loadPort); err != nil {
		return err
	}
	to := netip.AddrPortFrom(netip.MustParseAddr(endAddr(1)), loadPort)
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := poll.Until(limited, 50*time.Millisecond, func() error {
		return t.Once(w.ends[0], 0, to, message, time.Second)
	}); err != nil {
		return err
	}
	got, err := t.Query(w.ends[0], to, message, requested)
	if err != nil {
		return err
	}
	addTimes(add, "request and reply", got)
	m := &streamMeter{traffic: t, from: w.ends[0], pids: w.pids(), add: add}
	return m.measure("one stream", to)
}

func endAddr(i int) string     { return fmt.Sprintf("10.9.%d.2", i+1) }
func gatewayAddr(i int) string { return fmt.Sprintf("10.9.%d.1", i+1) }
func linkAddr(i int) string    { return fmt.Sprintf("10.9.0.%d", i+1) }

func (w *bareWorld) pids() (pids []int) {
	for _, v := range w.vpps {
		if v != nil {
			pids = append(pids, v.PID())
		}
	}
	return pids
}

func (w *bareWorld) build(ctx context.Context, ends, link plug) (err error) {
	for i := range w.ends {
		if w.ends[i], err = netns.New(ctx, fmt.Sprintf("%s-e%d", dataplaneName, i+1)); err != nil {
			return err
		}
	}
	if link == oneVPP {
		if err := w.launch(ctx, 0); err != nil {
			return err
		}
		return errors.Join(w.connectEnd(ctx, 0, 0, ends), w.connectEnd(ctx, 0, 1, ends))
	}
	for i := range w.nodes {
		if err := w.launch(ctx, i); err != nil {
			return err
		}
	}
	if err := veth(ctx, w.nodes[0], "wire", w.nodes[1], "wire"); err != nil {
		return err
	}
	for i := range w.nodes {
		if err := errors.Join(w.connectEnd(ctx, i, i, ends), w.connectNodes(i, link)); err != nil {
			return err
		}
	}
	return nil
}

// launch makes a node with a VPP.
func (w *bareWorld) launch(ctx context.Context, i int) (err error) {
	if w.nodes[i], err = netns.New(ctx, fmt.Sprintf("%s-n%d", dataplaneName, i+1)); err != nil {
		return err
	}
	w.vpps[i], err = vpptest.Launch(ctx, vpptest.Options{Netns: w.nodes[i].Name, Vhostshim: !lab.HasVhostNet(), Buffers: 32768})
	return err
}

// veth connects two namespaces.
func veth(ctx context.Context, a *netns.Namespace, nameA string, b *netns.Namespace, nameB string) error {
	_, err := a.Run(ctx, "ip", "link", "add", nameA, "up", "type", "veth", "peer", "name", nameB, "netns", b.Name)
	if err == nil {
		_, err = b.Run(ctx, "ip", "link", "set", nameB, "up")
	}
	return err
}

// connectEnd connects a VPP with a namespace.
func (w *bareWorld) connectEnd(ctx context.Context, node, i int, kind plug) error {
	end, ifc, offload := w.ends[i], fmt.Sprintf("tap%d", i), "off"
	if kind.isTAP() {
		flags := map[bool]string{true: " gso"}[kind == tapGSO]
		if kind == tapGSO {
			offload = "on"
		}
		create := fmt.Sprintf("create tap id %d host-if-name eth0 host-ns %s%s", i, end.Path(), flags)
		if err := w.cli(node, create, "set interface rx-mode "+ifc+" interrupt"); err != nil {
			return err
		}
	} else {
		device := fmt.Sprintf("end%d", i)
		ifc = "host-" + device
		if err := veth(ctx, w.nodes[node], device, end, "eth0"); err != nil {
			return err
		}
		if err := w.afPacket(node, device, kind); err != nil {
			return err
		}
	}
	for _, command := range []string{
		"ethtool -K eth0 tx " + offload, "ip addr add " + endAddr(i) + "/24 dev eth0", "ip link set eth0 up",
		"ip route add default via " + gatewayAddr(i),
	} {
		words := strings.Fields(command)
		if _, err := end.Run(ctx, words[0], words[1:]...); err != nil {
			return err
		}
	}
	return w.cli(node, "set interface state "+ifc+" up", "set interface ip address "+ifc+" "+gatewayAddr(i)+"/24")
}

// connectNodes connects a VPP with the other one.
func (w *bareWorld) connectNodes(i int, kind plug) error {
	ifc := "memif1/0"
	if kind == memif {
		role := [2]string{"master", "slave"}[i]
		socket := filepath.Join(w.vpps[0].Dir(), "memif.sock")
		if err := w.cli(i, "create memif socket id 1 filename "+socket, "create interface memif id 0 socket-id 1 "+role); err != nil {
			return err
		}
	} else {
		ifc = "host-wire"
		if err := w.afPacket(i, "wire", kind); err != nil {
			return err
		}
	}
	err := w.cli(i, "set interface state "+ifc+" up", "set interface ip address "+ifc+" "+linkAddr(i)+"/24",
		fmt.Sprintf("ip route add 10.9.%d.0/24 via %s", 2-i, linkAddr(1-i)))
	if err != nil || kind != memif || i == 0 {
		return err
	}
	time.Sleep(200 * time.Millisecond) // the mode of a memif takes effect when it is connected
	return errors.Join(w.cli(0, "set interface rx-mode memif1/0 interrupt"), w.cli(1, "set interface rx-mode memif1/0 interrupt"))
}

// afPacket attaches a VPP to a device as the agent does, optionally with another version of the ring.
func (w *bareWorld) afPacket(i int, device string, kind plug) error {
	c, err := core.Connect(socketclient.NewVppClient(w.vpps[i].Socket()))
	if err != nil {
		return err
	}
	defer c.Disconnect()
	req := iface.AfPacketRequest(device, testbed.UplinkMTU, iface.DefaultAfPacketRings())
	if kind == packetV3 { // VPP accepts 160 blocks of this version
		req.Flags &^= af_packet.AF_PACKET_API_FLAG_VERSION_2
		req.RxFramesPerBlock = 16
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := af_packet.NewServiceClient(c).AfPacketCreateV3(ctx, req); err != nil {
		return fmt.Errorf("%s on %s: %w", kind, device, err)
	}
	return w.cli(i, "set interface rx-mode host-"+device+" interrupt")
}

// cli runs commands that print nothing but the name of a new interface.
func (w *bareWorld) cli(i int, commands ...string) error {
	for _, command := range commands {
		out, err := w.vpps[i].CLI(command)
		if err == nil && len(strings.Fields(out)) > 1 {
			err = errors.New(strings.TrimSpace(out))
		}
		if err != nil {
			return fmt.Errorf("vppctl %s: %w", command, err)
		}
	}
	return nil
}

func (w *bareWorld) close(ctx context.Context) {
	for i := range w.nodes {
		if w.vpps[i] != nil {
			w.vpps[i].Stop()
		}
		for _, ns := range []*netns.Namespace{w.ends[i], w.nodes[i]} {
			if ns != nil {
				_ = ns.Delete(ctx) // on an error, netns.Clean finds it
			}
		}
	}
}
