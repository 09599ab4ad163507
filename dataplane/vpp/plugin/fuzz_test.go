package plugin_test

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestMalformed sends malformed packets through the real graph, with sanitizers, while a backend is added and removed: VPP does not crash,
// all buffers are released, and the number of connections stays within the limit. CONTIV_FUZZ is the number of packets in thousands. With
// CONTIV_SANITIZE=none the plugin is tested as shipped.
func TestMalformed(t *testing.T) {
	thousands, _ := strconv.Atoi(os.Getenv("CONTIV_FUZZ"))
	for _, workers := range workerCounts() {
		t.Run("workers="+strconv.Itoa(workers), func(t *testing.T) {
			s := newSite(newRig(t, vpptest.Options{Workers: workers, Sanitize: sanitizers()}))
			uplink := s.pg("")
			s.pgEndpoint(uplink, contiv.CONTIV_ROLE_API_UPLINK)
			s.do(s.api.ContivConfigSet(s.Context(), &contiv.ContivConfigSet{EndpointConnections: 5000, TunnelPorts: []uint16{4789, 0, 0, 0}, UDP: 1, ICMP: 1}))
			before := s.buffersUsed()
			const each = 20_000
			for n := range max(thousands, 40) * 1000 / each {
				from := []*generator{s.client, s.server, uplink}[n%3]
				s.inject(from, broken(rand.New(rand.NewPCG(uint64(n), uint64(workers))), from, each))
				s.backend(n%2 == 0)
			}
			if st := s.stats(); st.Created == 0 {
				s.Errorf("nothing got through: %+v", st)
			}
			s.eventually("all buffers are back", func() bool { return s.buffersUsed() <= before })
			sent, got := requestFlow(false, tcp, 1)
			s.expect(s.client, s.server, [][]byte{sent.packet(syn, nil)}, got)
			for line := range strings.Lines(s.vpp.Log()) {
				if strings.Contains(line, "runtime error") && !strings.Contains(line, "/include/") || strings.Contains(line, "AddressSanitizer") {
					s.Error(line)
				}
			}
			s.Log(s.cli("show contiv stats"))
		})
	}
}

// sanitizers returns the sanitizers with which the plugin is built for long tests.
func sanitizers() string {
	switch names := os.Getenv("CONTIV_SANITIZE"); names {
	case "":
		return "address,undefined"
	case "none":
		return ""
	default:
		return names
	}
}

// backend adds or deletes a second backend of the first service.
func (s *site) backend(add bool) {
	s.Helper()
	s.do(s.api.ContivBackendAddDel(s.Context(), &contiv.ContivBackendAddDel{IsAdd: add, ServiceID: 3, Address: address(s.client.v4), Port: 99}))
}

// inject sends frames without checking the result.
func (r *rig) inject(from *generator, frames [][]byte) {
	r.Helper()
	r.sent++
	file := filepath.Join(r.TempDir(), "in.pcap")
	writePcap(r, file, frames...)
	stream := "s" + strconv.Itoa(r.sent)
	r.cli("packet-generator new pcap %s source pg%d name %s limit %d", file, from.n, stream, len(frames))
	r.cli("packet-generator enable-stream %s", stream)
	r.streamEnds()
	r.cli("packet-generator delete %s", stream)
	_ = os.Remove(file)
}

// broken returns n frames: valid packets of all kinds with bytes changed, truncated, or too long.
func broken(rnd *rand.Rand, from *generator, n int) (frames [][]byte) {
	for len(frames) < n {
		p := append(whole(rnd, from), 0)
		for range rnd.IntN(4) {
			p[rnd.IntN(len(p))] = byte(rnd.Uint32())
		}
		switch rnd.IntN(4) {
		case 0:
			p = p[:1+rnd.IntN(len(p))]
		case 1:
			p = append(p, make([]byte, rnd.IntN(100))...)
		}
		if rnd.IntN(4) > 0 && len(p) >= 20 && p[0] == 0x45 { // so that ip4-input accepts it
			be.PutUint16(p[2:], uint16(len(p)))
			p[10], p[11] = 0, 0
			be.PutUint16(p[10:], ^fold(sum(p[:20])))
		}
		if rnd.IntN(4) > 0 && len(p) >= 40 && p[0]>>4 == 6 {
			be.PutUint16(p[4:], uint16(len(p)-40))
		}
		f := ether(from.n, p)
		if rnd.IntN(50) == 0 {
			f = arp(from.n, from.v4, from.v6.Prev())
		}
		frames = append(frames, f)
	}
	return frames
}

// whole returns a valid packet of a random kind.
func whole(rnd *rand.Rand, from *generator) []byte {
	protos := []uint8{tcp, udp, sctp, icmp4, 0, 47, 255}
	f := flow{protos[rnd.IntN(len(protos))], end(rnd, from.v4, "10.1.2.2:8080", "10.1.1.2:99", "8.8.8.8:53"), end(rnd, from.v4, "10.96.0.1:80", "10.1.2.2:8080", "10.1.1.2:1", "10.1.1.1:1", "224.0.0.9:1")}
	if rnd.IntN(2) == 0 {
		f = flow{f.proto, end(rnd, from.v6, "[fd00:1:2::2]:8080", "[fe80::1]:1", "[::]:1"), end(rnd, from.v6, "[fd00:96::1]:80", "[fd00:1:2::2]:8080", "[fd00:1:1::1]:1", "[ff02::1]:1")}
		if f.proto == icmp4 {
			f.proto = icmp6
		}
	}
	payload := make([]byte, rnd.IntN(200))
	if rnd.IntN(3) == 0 { // possibly the packet inside an ICMP error
		payload = append(make([]byte, rnd.IntN(2)*2), f.back().packet(byte(rnd.Uint32()), nil)...)
	}
	p := f.packet(byte(rnd.Uint32()), payload)
	switch rnd.IntN(6) {
	case 0:
		all := fragments(p, rnd.Uint32N(500), 8*(1+rnd.IntN(8)))
		if len(all) > 0 {
			return all[rnd.IntN(len(all))]
		}
	case 1:
		if p[0]>>4 == 6 { // extension headers
			extension := []byte{p[6], byte(rnd.IntN(3)), 1, 4, 0, 0, 0, 0}
			p[6] = []byte{0, 43, 44, 51, 60, 135}[rnd.IntN(6)]
			p = append(append(append([]byte{}, p[:40]...), extension...), p[40:]...)
		}
	}
	return p
}

func end(rnd *rand.Rand, own netip.Addr, others ...string) netip.AddrPort {
	if rnd.IntN(2) == 0 {
		return netip.AddrPortFrom(own, uint16(rnd.Uint32N(3000)))
	}
	return netip.MustParseAddrPort(others[rnd.IntN(len(others))])
}
