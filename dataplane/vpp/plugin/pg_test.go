package plugin_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

// generator is a packet-generator interface with a machine behind it.
type generator struct {
	port
	n int
}

// pg creates an interface like tap, without a namespace.
func (r *rig) pg(options string) *generator {
	r.Helper()
	r.pods++
	g := &generator{n: r.pods}
	g.v4, g.v6 = netip.AddrFrom4([4]byte{10, 1, byte(g.n), 2}), netip.MustParseAddr(fmt.Sprintf("fd00:1:%d::2", g.n))
	name := fmt.Sprintf("pg%d", g.n)
	r.cli("create packet-generator interface %s hw-addr %s %s", name, mac(portMAC(g.n)), options)
	r.cli("set interface ip address %s 10.1.%d.1/24", name, g.n)
	r.cli("set interface ip address %s fd00:1:%d::1/64", name, g.n)
	r.cli("set interface state %s up", name)
	r.cli("set ip neighbor static %s %s %s", name, g.v4, mac(hostMAC(g.n)))
	r.cli("set ip neighbor static %s %s %s", name, g.v6, mac(hostMAC(g.n)))
	g.index = r.index(name)
	g.port.Namespace = nil
	return g
}

// worker returns the worker that receives from the generator: a different one for each generator, as far as VPP has enough; for greater
// numbers VPP uses the first one.
func (g *generator) worker() int { return g.n - 1 }

func mac(b []byte) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5])
}

// pgEndpoint does the same as endpoint, for a generator.
func (r *rig) pgEndpoint(g *generator, role contiv.ContivRole, addresses ...netip.Addr) {
	r.Helper()
	req := &contiv.ContivEndpointSet{SwIfIndex: g.index, Role: role, Name: fmt.Sprintf("pg%d", g.n), NAddresses: uint8(len(addresses))}
	for _, a := range addresses {
		req.Addresses = append(req.Addresses, address(a))
	}
	r.do(r.api.ContivEndpointSet(r.Context(), req))
}

// send sends packets from a generator in order, and returns the packets that each generator receives, by number.
func (r *rig) send(from *generator, to []*generator, packets ...[]byte) map[int][][]byte {
	r.Helper()
	var frames [][]byte
	for _, p := range packets {
		if v := p[0] >> 4; v == 4 || v == 6 {
			p = ether(from.n, p)
		}
		frames = append(frames, p)
	}
	r.sent++
	dir := r.TempDir()
	in := filepath.Join(dir, "in.pcap")
	writePcap(r, in, frames...)
	file := func(g *generator) string { return filepath.Join(dir, fmt.Sprintf("out%d.pcap", g.n)) }
	for _, g := range to {
		r.cli("packet-generator capture pg%d pcap %s count 100000", g.n, file(g))
	}
	stream := fmt.Sprintf("s%d", r.sent)
	r.cli("packet-generator new pcap %s source pg%d name %s limit %d worker %d", in, from.n, stream, len(frames), from.worker())
	r.cli("packet-generator enable-stream %s", stream)
	r.streamEnds()
	r.cli("packet-generator delete %s", stream)
	out := map[int][][]byte{}
	for _, g := range to {
		r.cli("packet-generator capture pg%d disable", g.n)
		for _, f := range readPcap(r, file(g)) {
			if len(f) > 14 && (f[12] == 8 && f[13] == 0 || f[12] == 0x86) && !discovery(f[14:]) {
				out[g.n] = append(out[g.n], f[14:])
			}
		}
	}
	return out
}

// discovery reports whether a packet is one of VPP's own: neighbour discovery or a listener report.
func discovery(p []byte) bool { return p[0]>>4 == 6 && (p[6] == 0 || p[6] == icmp6 && p[40] >= 130) }

// streamEnds waits until no stream runs, and its last frame has passed through the graph. For each request VPP stops its workers at the
// beginning of their loop, so between two requests each worker has completed all its work, including handing packets over to another
// worker.
func (r *rig) streamEnds() {
	r.Helper()
	end := time.Now().Add(5 * time.Minute)
	for ; strings.Contains(r.cli("show packet-generator"), "Yes"); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatal("a stream does not end")
		}
	}
	const handovers = 3
	for range handovers {
		r.stats()
	}
}

// advance moves VPP's clock forward, and runs all timers that expire until then, in their order. It returns when that is done. The command
// uses the socket of the CLI, because other requests of an API client would disturb it.
func (r *rig) advance(d time.Duration) {
	r.Helper()
	_, err := r.vpp.CLI(fmt.Sprintf("set clock adjust %f", d.Seconds()))
	r.do(nil, err)
}
