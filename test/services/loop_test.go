package services

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/matrix"
)

// unusedAddresses are from all networks of the cluster and outside of it. Most of them are not assigned; the rest do not receive such packets from
// services.
const unusedAddresses = `10.96.9.9 fd10:96::9:9 10.1.1.77 10.1.2.77 10.1.3.77 fd10:1:0:1::77 fd10:1:0:2::77 fd10:1:0:3::77 fd10:1:0:ffff::77
	10.1.1.1 10.1.2.1 10.1.1.254 10.1.2.254 10.1.1.255 10.1.2.255 fd10:1:0:1::1 fd10:1:0:2::1 fd10:1:0:1:: fd10:1:0:2::
	fd10:1:0:1:ffff:ffff:ffff:fffe fd10:1:0:2:ffff:ffff:ffff:fffe fd10:1:0:1:ffff:ffff:ffff:ffff fd10:1:0:2:ffff:ffff:ffff:ffff
	172.30.1.1 172.30.1.2 172.30.1.3 172.30.1.4 172.30.1.5 172.30.1.77 172.30.2.1 172.30.2.2 172.30.2.3 172.30.2.4 172.30.2.77 172.30.3.3
	fd00:172:30:1::1 fd00:172:30:1::2 fd00:172:30:1::3 fd00:172:30:1::4 fd00:172:30:1::5 fd00:172:30:1::77 fd00:172:30:3::3
	fd00:172:30:2::1 fd00:172:30:2::2 fd00:172:30:2::3 fd00:172:30:2::4 fd00:172:30:2::5 fd00:172:30:2::77
	192.168.30.1 192.168.30.2 192.168.30.77 fd00:192:168:30::1 fd00:192:168:30::2 fd00:192:168:30::77
	192.168.16.1 192.168.16.2 192.168.16.77 192.168.16.250 fd00:16::1 fd00:16::2 fd00:16::77 fd00:16::fa
	203.0.113.9 2001:db8:113::9 198.51.100.8 2001:db8::8 10.199.0.101 10.199.0.102 10.199.0.77 fd00:99::65 fd00:99::66 fd00:99::77
	64:ff9b::c633:6408 ff05::2 224.1.2.3`

// routedOutside are the networks that the machine outside routes to a node.
const routedOutside = "10.0.0.0/8 172.30.0.0/16 192.168.30.0/24 198.51.100.0/24 fd10::/16 fd00:172:30::/48 fd00:192::/32 fd00:99::/64 2001:db8::/32 64:ff9b::/96"

// TestNoLoops checks that no packet loops between nodes, for any address, sent by a pod, a host, or a machine outside. Most packets do not cross
// the network that connects nodes at all; ten packets to one address that looped would cross it more than 600 times.
func TestNoLoops(t *testing.T) {
	for _, m := range []mode{vpp, vppPlugin} {
		for _, f := range []fabric{{}, {workers: 2}, {noOverlay: true}} {
			t.Run(fmt.Sprintf("%s/workers=%d,noOverlay=%t", m, f.workers, f.noOverlay), func(t *testing.T) {
				if !slices.Contains(modes(), m) {
					t.Skipf("%s: skipped: not among the modes", m)
				}
				m.needs(t)
				matrix.Only(t)
				newRealWorld(t, m, f).noLoops()
			})
		}
	}
}

// noLoops sends from all kinds of sites, by each node.
func (w *world) noLoops() {
	w.t.Helper()
	for node, via := range w.uplinks {
		for _, prefix := range strings.Fields(routedOutside) {
			gateway := via[0]
			if netip.MustParsePrefix(prefix).Addr().Is6() {
				gateway = via[1]
			}
			w.ip(w.Underlay, "route replace "+prefix+" via "+gateway.String())
		}
		for _, client := range []string{"p1", "p2", "h1", "h2", "out"} {
			if node == 0 || client == "out" {
				w.noLoop(fmt.Sprintf("%s, out by node %d", client, node+1), client)
			}
		}
	}
}

// noLoop sends a few packets to each address.
func (w *world) noLoop(what, client string) {
	w.t.Helper()
	const packets, besides = 10, 200 // besides: for neighbour discovery, and the traffic between agents
	before, expired := w.crossings(), w.expired()
	sent := 0
	for _, text := range strings.Fields(unusedAddresses) {
		sent += w.shoot(client, netip.MustParseAddr(text), packets)
	}
	last, quiet := before, 0
	w.within(time.Minute, what+": the network is quiet", func() error {
		now := w.crossings()
		if quiet++; now > last+5 || now == before {
			quiet = 0
		}
		if last = now; quiet < 15 {
			return errors.New("packets are under way")
		}
		return nil
	})
	crossings, over := w.crossings()-before, w.expired()-expired
	w.t.Logf("%s: %d packets, %d crossings", what, sent, crossings)
	if sent < 100 {
		w.t.Errorf("%s: only %d packets were sent", what, sent)
	}
	if over > 0 || crossings > sent+besides {
		w.t.Errorf("%s: %d packets crossed the network %d times, and the hop limit of %d ended", what, sent, crossings, over)
	}
}

// expired returns the number of packets that nodes have dropped because their hop limit was used up.
func (w *world) expired() (sum int) {
	w.t.Helper()
	for _, n := range w.nodesOfVPP() {
		out, err := n.VPP.CLI("show errors")
		w.must(err)
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			if len(f) > 1 && strings.Contains(line, "ttl <= 1") {
				var k int
				if _, err := fmt.Sscan(f[0], &k); err == nil {
					sum += k
				}
			}
		}
	}
	return sum
}

// crossings returns the number of packets that the nodes have sent to the network that connects them.
func (w *world) crossings() (sum int) {
	w.t.Helper()
	out, err := w.Underlay.Run(w.ctx, "ip", "-s", "-j", "link")
	w.must(err)
	var links []struct {
		Name  string `json:"ifname"`
		Stats struct {
			RX struct{ Packets int } `json:"rx"`
		} `json:"stats64"`
	}
	w.must(json.Unmarshal([]byte(out), &links))
	for _, l := range links {
		if l.Name == "uplink1" || l.Name == "uplink2" {
			sum += l.Stats.RX.Packets
		}
	}
	return sum
}

// shoot sends UDP packets from a site; it returns the number of those that the site's own kernel has not rejected.
func (w *world) shoot(client string, to netip.Addr, packets int) (sent int) {
	w.t.Helper()
	w.must(w.spaces[client].Do(func() error {
		c, err := net.Dial("udp", netip.AddrPortFrom(to, 9999).String())
		if err != nil {
			return nil // there is no route
		}
		defer c.Close()
		for range packets {
			if _, err := c.Write([]byte("loop?")); err == nil {
				sent++
			}
		}
		return nil
	}))
	return sent
}
