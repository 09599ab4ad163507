package cluster

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/bulk"
	"contiv.dev/vswitch/test/testbed/forge"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// gsoMode has pods that leave segmentation to VPP.
var gsoMode = mode{dataplane: "vpp", transport: "vxlan", plugin: true}

// TestHostileFrames checks that, for any frames from a pod, VPP keeps running and forwards the data of others without errors: wrong
// lengths, truncated headers, fragments without a datagram, forged virtio headers; and the same from a pod that may change its own
// device, which sets the largest possible MTU and enables offloads.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	for _, m := range bulkModes {
		if m.dataplane != "vpp" {
			continue
		}
		t.Run(m.String(), func(t *testing.T) {
			matrix.Only(t, gsoMode.String())
			w := newWorld(t, m, 2)
			pods := w.podPerNode()
			pods = append(pods, w.pod(w.Nodes[0], "b"))
			evil := w.pod(w.Nodes[0], "evil")
			w.mesh(append(pods, evil))
			w.serveBulk(pods[1].Namespace)
			w.serveBulk(pods[2].Namespace)
			pids := w.vppPIDs()
			w.assault(evil, pods)
			w.grow(evil)
			w.assault(evil, pods)
			for _, to := range []*testbed.Pod{pods[2], pods[1]} {
				for _, ip := range to.IPs {
					w.load(pods[0].Namespace, ip)
				}
			}
			w.unharmed("tx frame not ready") // a packet that is too long for a VETH's ring is truncated, and dropped
			for i, pid := range w.vppPIDs() {
				if pid != pids[i] {
					t.Errorf("the VPP of %s has died", w.Nodes[i].Name)
				}
			}
		})
	}
}

func (w *world) vppPIDs() []int {
	pids := make([]int, len(w.Nodes))
	for i, n := range w.Nodes {
		pids[i] = n.VPP.PID()
	}
	return pids
}

// grow makes the changes that a pod with CAP_NET_ADMIN can make to its own device.
func (w *world) grow(p *testbed.Pod) {
	w.t.Helper()
	_, err := p.Run(w.ctx, "ip", "link", "set", "eth0", "mtu", "65000")
	w.must(err)
	for _, what := range []string{"tx", "tso", "gso", "sg"} {
		_, _ = p.Run(w.ctx, "ethtool", "-K", "eth0", what, "on") // a TAP rejects this
	}
}

// assault sends all kinds of frames, during a stream between other pods.
func (w *world) assault(evil *testbed.Pod, victims []*testbed.Pod) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 3*time.Minute)
	defer cancel()
	streams := make(chan error, 1)
	go func() {
		_, err := bulk.Load{Up: 1, Down: 1, Length: 16 << 20}.Run(ctx, victims[0].Namespace, netip.AddrPortFrom(victims[1].IPs[0], bulkPort))
		streams <- err
	}()
	sent, why := 0, error(nil)
	for _, victim := range []*testbed.Pod{victims[2], victims[1]} {
		for i, dst := range victim.IPs {
			path := w.pathOf(evil, evil.IPs[i], dst)
			for _, bypass := range []bool{false, true} {
				for _, vnet := range []bool{false, true} {
					s, err := throw(evil, path, vnet, bypass)
					w.must(err)
					// A link whose queue is full of earlier frames accepts nothing for a while.
					sent, why = sent+s.Sent, s.Why
				}
			}
		}
	}
	if sent < 1000 {
		w.t.Errorf("the pod's kernel has refused all but %d frames: %v", sent, why)
	}
	if err := <-streams; err != nil {
		w.t.Errorf("others' data, under attack: %v", err)
	}
}

// pathOf returns the path from a pod through its gateway.
func (w *world) pathOf(p *testbed.Pod, src, dst netip.Addr) forge.Path {
	w.t.Helper()
	out, err := p.Run(w.ctx, "sh", "-c", "cat /sys/class/net/eth0/address; ip neigh show dev eth0 | grep PERMANENT | head -1")
	w.must(err)
	own, neighbour, _ := strings.Cut(out, "\n")
	if own == "" || !strings.Contains(neighbour, "lladdr ") {
		own = w.macOf(p)
	}
	_, gateway, _ := strings.Cut(neighbour, "lladdr ")
	gateway, _, _ = strings.Cut(gateway, " ")
	from, err1 := net.ParseMAC(strings.TrimSpace(own))
	to, err2 := net.ParseMAC(strings.TrimSpace(gateway))
	w.must(errors.Join(err1, err2))
	return forge.Path{From: from, To: to, Src: src, Dst: dst}
}

func (w *world) macOf(p *testbed.Pod) string {
	w.t.Helper()
	out, err := p.Run(w.ctx, "ip", "-o", "link", "show", "eth0")
	w.must(err)
	_, mac, _ := strings.Cut(out, "link/ether ")
	mac, _, _ = strings.Cut(mac, " ")
	return mac
}

// throw sends every kind of frame.
func throw(p *testbed.Pod, path forge.Path, vnet, bypass bool) (*forge.Socket, error) {
	s, err := forge.Open(p.Namespace, "eth0", vnet, bypass)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for i, packet := range hostilePackets(path.Dst.Is6()) {
		frame := path.Frame(packet)
		s.Send(frame, forge.Offload{})
		if !vnet {
			continue
		}
		offloads := forgedOffloads(path)
		for n := range 4 { // other offloads with each packet, so that all are tried
			s.Send(frame, offloads[(4*i+n)%len(offloads)])
		}
	}
	if !vnet {
		return s, nil
	}
	for _, o := range forgedOffloads(path) {
		for _, payload := range []int{0, 1402, 5000, 30001} {
			for _, proto := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
				if o.GSOSize < 100 && payload > 5000 {
					continue // the pod's kernel would be busy with it
				}
				s.Send(path.Frame(forge.Packet{Proto: proto, Payload: payload}), o)
			}
		}
	}
	return s, nil
}

// hostilePackets have wrong values in all fields for lengths.
func hostilePackets(v6 bool) []forge.Packet {
	var out []forge.Packet
	for _, proto := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, 4, 41, 47, 132} {
		for _, payload := range []int{0, 1, 1402, 1437, 8000, 60000} {
			out = append(out, forge.Packet{Proto: proto, Payload: payload})
			for _, length := range []uint16{1, 20, 28, 100, 1500, 9000, 65535} {
				out = append(out, forge.Packet{Proto: proto, Payload: payload, Length: length})
			}
			for _, fragment := range []uint16{0x2000, 0x2001, 0x1fff, 0x3fff, 0xffff, 0x0001, 0xfff9} {
				out = append(out, forge.Packet{Proto: proto, Payload: payload, Fragment: fragment})
			}
			out = append(out, forge.Packet{Proto: proto, Payload: payload, DataOffset: 15}, forge.Packet{Proto: proto, Payload: payload, DataOffset: 1},
				forge.Packet{Proto: proto, Payload: payload, VLANs: 1}, forge.Packet{Proto: proto, Payload: payload, VLANs: 2})
			if v6 {
				out = append(out, forge.Packet{Proto: proto, Payload: payload, Extensions: []uint8{0}},
					forge.Packet{Proto: proto, Payload: payload, Extensions: []uint8{60, 43, 60, 0, 60, 51, 135}},
					forge.Packet{Proto: proto, Payload: payload, Extensions: make([]uint8, 100)})
			} else {
				out = append(out, forge.Packet{Proto: proto, Payload: payload, HeaderWords: 15}, forge.Packet{Proto: proto, Payload: payload, HeaderWords: 1})
			}
		}
	}
	return out
}

// forgedOffloads request impossible offloads from the device.
func forgedOffloads(path forge.Path) []forge.Offload {
	types := []uint8{0, forge.GSOTCPv4, forge.GSOTCPv6, forge.GSOUDP, forge.GSOUDPL4, forge.GSOTCPv4 | forge.GSOECN}
	l4 := uint16(34)
	if path.Dst.Is6() {
		l4 = 54
	}
	out := []forge.Offload{{}}
	for _, kind := range types {
		for _, size := range []uint16{7, 536, 1398, 9000, 65535} {
			for _, offset := range []uint16{16, 6, 0xfff0} {
				out = append(out, forge.Offload{Flags: forge.NeedsChecksum, GSOType: kind, GSOSize: size, HeaderLen: l4 + 20,
					ChecksumStart: l4, ChecksumOffset: offset})
			}
		}
		out = append(out, forge.Offload{GSOType: kind, GSOSize: 100, HeaderLen: 0xffff},
			forge.Offload{Flags: forge.NeedsChecksum, GSOType: kind, GSOSize: 100, HeaderLen: 1, ChecksumStart: 0xffff, ChecksumOffset: 16},
			forge.Offload{Flags: forge.NeedsChecksum, GSOType: kind, GSOSize: 100, HeaderLen: l4 + 60, ChecksumStart: 1, ChecksumOffset: 16})
	}
	return out
}
