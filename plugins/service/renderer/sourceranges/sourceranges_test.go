package sourceranges

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// decides is what the ACL does with a packet: the first rule that matches decides, and without one it is let through.
func decides(v *vpp_acl.ACL, src, dst string, proto renderer.ProtocolType, port uint32) bool {
	for _, r := range v.GetRules() {
		ip := r.IpRule
		ports := ip.GetTcp().GetDestinationPortRange()
		if proto == renderer.UDP {
			ports = ip.GetUdp().GetDestinationPortRange()
		}
		if netip.MustParsePrefix(ip.Ip.SourceNetwork).Contains(netip.MustParseAddr(src)) &&
			netip.MustParsePrefix(ip.Ip.DestinationNetwork).Contains(netip.MustParseAddr(dst)) &&
			ports != nil && ports.LowerPort <= port && port <= ports.UpperPort {
			return r.Action == vpp_acl.ACL_Rule_PERMIT
		}
	}
	return true
}

// holder is what Emit puts.
type holder struct {
	acl  *vpp_acl.ACL
	puts int
}

func (h *holder) put(m proto.Message) { h.acl, h.puts = m.(*vpp_acl.ACL), h.puts+1 }
func (h *holder) remove(proto.Message) {
	h.acl = nil
	h.puts++
}

func place(addr string, port uint16) Frontend {
	return Frontend{Addr: netip.MustParseAddr(addr), Port: port, Proto: renderer.TCP}
}

func nets(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func TestSourceRangeRules(t *testing.T) {
	g, h := New("acl"), &holder{}
	node := Node{Interfaces: renderer.NewInterfaces("b", "a"), Host: netip.MustParseAddr("172.30.1.2"),
		Own: renderer.FromAddrs(netip.MustParseAddr("192.168.16.1"), netip.MustParseAddr("fd00:16::1"))}
	g.Emit(node, h.put, h.remove)
	if h.puts > 0 {
		t.Error("an ACL without frontends")
	}
	g.Set(place("203.0.113.1", 80), nets("198.51.100.0/24"))
	g.Set(place("203.0.113.2", 80), nets("192.168.16.0/24"))
	g.Set(place("203.0.113.3", 80), nil)
	g.Set(place("fd00:99::1", 80), nets("fd00:16::/64"))
	whole := Frontend{Addr: netip.MustParseAddr("203.0.113.4")}
	g.Set(whole, nil)
	g.Emit(node, h.put, h.remove)
	last := h.acl.Rules[slices.IndexFunc(h.acl.Rules, func(r *vpp_acl.ACL_Rule) bool {
		return r.IpRule.Ip.DestinationNetwork == "203.0.113.4/32"
	})]
	if r := last.IpRule; last.Action != vpp_acl.ACL_Rule_DENY || r.Tcp != nil || r.Udp != nil || r.Icmp != nil ||
		r.Ip.Protocol != 0 {
		t.Errorf("a whole address: %v", last)
	}
	g.Clear(whole)
	g.Emit(node, h.put, h.remove)
	if on := h.acl.Interfaces.Ingress; !slices.Equal(on, []string{"a", "b"}) {
		t.Errorf("on %s", on)
	}
	for _, c := range []struct {
		src, dst string
		proto    renderer.ProtocolType
		port     uint32
		may      bool
	}{
		{"198.51.100.7", "203.0.113.1", renderer.TCP, 80, true},
		{"198.51.101.7", "203.0.113.1", renderer.TCP, 80, false},
		{"198.51.101.7", "203.0.113.1", renderer.TCP, 81, true},
		{"198.51.101.7", "203.0.113.1", renderer.UDP, 80, true},
		{"172.30.1.2", "203.0.113.1", renderer.TCP, 80, false},
		{"172.30.1.2", "203.0.113.2", renderer.TCP, 80, true}, // the host is the node
		{"192.168.16.1", "203.0.113.3", renderer.TCP, 80, false},
		{"fd00:16::9", "fd00:99::1", renderer.TCP, 80, true},
		{"fd00:17::9", "fd00:99::1", renderer.TCP, 80, false},
		{"198.51.101.7", "203.0.113.9", renderer.TCP, 80, true},
	} {
		if may := decides(h.acl, c.src, c.dst, c.proto, c.port); may != c.may {
			t.Errorf("%+v: %t", c, may)
		}
	}
	before := h.puts
	g.Set(place("203.0.113.1", 80), nets("198.51.100.0/24"))
	g.Clear(place("203.0.113.7", 80))
	g.Emit(node, h.put, h.remove)
	if h.puts != before {
		t.Error("put again for nothing")
	}
	for _, p := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "fd00:99::1"} {
		g.Clear(place(p, 80))
	}
	g.Emit(node, h.put, h.remove)
	if h.acl != nil {
		t.Errorf("left: %v", h.acl)
	}
}

// However many places are to be dropped, those that some may use are all there.
func TestManyDrops(t *testing.T) {
	g, h := New("acl"), &holder{}
	for n := range 3 * mostDrops {
		g.Set(place(fmt.Sprintf("10.96.%d.%d", n/250, n%250), 80), nil)
		g.Set(place(fmt.Sprintf("203.0.%d.%d", n/250, n%250), 80), nets("198.51.100.0/24"))
	}
	g.Emit(Node{}, h.put, h.remove)
	drops := 0
	for n := range 3 * mostDrops {
		if !decides(h.acl, "192.0.2.1", fmt.Sprintf("10.96.%d.%d", n/250, n%250), renderer.TCP, 80) {
			drops++
		}
		if decides(h.acl, "192.0.2.1", fmt.Sprintf("203.0.%d.%d", n/250, n%250), renderer.TCP, 80) {
			t.Fatalf("number %d is open", n)
		}
	}
	if drops != mostDrops {
		t.Errorf("%d are dropped", drops)
	}
}

// Any order of changes ends in the ACL of what is set.
func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		g, h := New("acl"), &holder{}
		want := map[Frontend][]netip.Prefix{}
		node := Node{}
		for range 30 {
			p := place(fmt.Sprintf("203.0.113.%d", random.IntN(5)), uint16(80+random.IntN(2)))
			if random.IntN(3) == 0 {
				g.Clear(p)
				delete(want, p)
			} else {
				want[p] = nets(fmt.Sprintf("10.%d.0.0/16", random.IntN(3)))
				g.Set(p, want[p])
			}
			if random.IntN(2) == 0 {
				node = Node{Interfaces: renderer.NewInterfaces(fmt.Sprint("i", random.IntN(3)))}
				g.Emit(node, h.put, h.remove)
			}
		}
		g.Emit(node, h.put, h.remove)
		fresh, f := New("acl"), &holder{}
		for p, from := range want {
			fresh.Set(p, from)
		}
		fresh.Emit(node, f.put, f.remove)
		if !proto.Equal(h.acl, f.acl) {
			t.Fatalf("%v\nwant\n%v", h.acl, f.acl)
		}
	}
}
