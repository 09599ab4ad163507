package plugin_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

// TestCutWhilePacketsFlow: policy stops allowing a client. Its open connections, including those through a service, are cut while packets
// flow in both directions, each on a worker of its own. After VPP has answered the request, and each worker has started its loop again, no
// packet passes.
func TestCutWhilePacketsFlow(t *testing.T) {
	onSite(t, 2, func(s *site) {
		for _, v6 := range families {
			for _, proto := range []uint8{tcp, udp} {
				s.cutWhileItFlows(v6, proto, v6 != (proto == tcp))
			}
		}
	})
}

func (s *site) cutWhileItFlows(v6 bool, proto uint8, served bool) {
	s.Helper()
	sent, got := requestFlow(v6, proto, 1000)
	node, counted := "contiv-ip4-input", "translated"
	if v6 {
		node = "contiv-ip6-input"
	}
	if !served {
		sent.dst, counted = got.dst, "passed"
	}
	s.allowClient(sent.src.Addr(), true)
	s.open(sent, got)
	streams := []string{s.repeat(s.client, numbered(sent, ack, 2, 2)), s.repeat(s.server, numbered(got.back(), ack, 2, 2))}
	s.flows(node, counted)
	s.allowClient(sent.src.Addr(), false)
	s.stats() // each request stops the workers at the beginning of their loop
	before := s.counter(node, counted)
	s.flows(node, "denied by network policy")
	if n := s.counter(node, counted) - before; n > 0 {
		s.Errorf("%s: %d packets passed after the change", sent, n)
	}
	s.allowClient(sent.src.Addr(), true)
	s.flows(node, counted)
	for _, stream := range streams {
		s.cli("packet-generator disable-stream %s", stream)
		s.cli("packet-generator delete %s", stream)
	}
	s.cli("clear contiv connections")
}

// allowClient lets the server receive only from a client, or from no client.
func (s *site) allowClient(client netip.Addr, allow bool) {
	s.Helper()
	const set = 7
	ctx := s.Context()
	if allow {
		s.do(s.api.ContivSetAddDel(ctx, &contiv.ContivSetAddDel{IsAdd: true, ID: set, Name: "clients", Kind: contiv.CONTIV_SET_API_NETWORKS}))
	}
	s.member(set, client, allow)
	if !allow {
		return
	}
	rule := contiv.ContivRule{Action: contiv.CONTIV_RULE_API_ALLOW, Source: set}
	s.do(s.api.ContivPolicySet(ctx, &contiv.ContivPolicySet{ID: set, Name: "allow", NIngress: 1, NRules: 1, Rules: []contiv.ContivRule{rule}}))
	s.do(s.api.ContivEndpointPolicySet(ctx, &contiv.ContivEndpointPolicySet{
		SwIfIndex: s.server.index, Name: "server", Ingress: contiv.CONTIV_RULE_API_ALLOW, Egress: contiv.CONTIV_RULE_API_ALLOW, NIngress: 2, NItems: 2,
		Items: []contiv.ContivTierItem{{PolicyID: set}, {Action: contiv.CONTIV_RULE_API_DENY}},
	}))
}

// open exchanges the packets that open a connection.
func (s *site) open(sent, got flow) {
	s.Helper()
	first, second := uint8(syn), uint8(syn|ack)
	s.expect(s.client, s.server, [][]byte{numbered(sent, first, 1, 0)}, got)
	s.expect(s.server, s.client, [][]byte{numbered(got.back(), second, 1, 2)}, sent.back())
	s.expect(s.client, s.server, [][]byte{numbered(sent, ack, 2, 2)}, got)
}

// numbered returns a packet of a flow. A TCP packet has sequence number seq and acknowledges acked.
func numbered(f flow, flags uint8, seq, acked uint32) []byte {
	if f.proto != tcp {
		return f.packet(0, make([]byte, 18))
	}
	b := f.transport(flags, nil)
	be.PutUint32(b[4:], seq)
	be.PutUint32(b[8:], acked)
	be.PutUint16(b[16:], 0)
	be.PutUint16(b[16:], f.checksum(b))
	return ip(f.proto, f.src.Addr(), f.dst.Addr(), b)
}

// repeat sends a packet continuously until its stream is disabled.
func (r *rig) repeat(from *generator, packet []byte) (stream string) {
	r.Helper()
	r.sent++
	in := filepath.Join(r.TempDir(), "in.pcap")
	writePcap(r, in, ether(from.n, packet))
	stream = fmt.Sprintf("s%d", r.sent)
	r.cli("packet-generator new pcap %s source pg%d name %s limit 4000000000 rate 20000 worker %d", in, from.n, stream, from.worker())
	r.cli("packet-generator enable-stream %s", stream)
	return stream
}

// flows waits until the counter has increased by some thousands of packets.
func (r *rig) flows(node, reason string) {
	r.Helper()
	before := r.counter(node, reason)
	r.eventually(fmt.Sprintf("%s counts packets as %q", node, reason), func() bool { return r.counter(node, reason) > before+5000 })
}
