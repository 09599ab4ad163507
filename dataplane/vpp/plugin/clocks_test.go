package plugin_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestClocks measures the cost of a packet that is forwarded without the plugin, by an interface with the source check, and by an
// established connection of a service. CONTIV_CLOCKS=1000000 measures up to this number of flows.
func TestClocks(t *testing.T) {
	most, _ := strconv.Atoi(os.Getenv("CONTIV_CLOCKS"))
	if most == 0 {
		matrix.Only(t)
	}
	repeat := 20 // number of measurements of each figure
	if most == 0 {
		repeat = 2 // exact figures are only needed if CONTIV_CLOCKS is set
	}
	for _, flows := range []int{1, 10_000, 1_000_000} {
		if flows > max(most, 1) {
			break
		}
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("flows=%d,ip6=%v", flows, v6), func(t *testing.T) { clocks(t, flows, repeat, v6) })
		}
	}
}

func clocks(t *testing.T, flows, repeat int, v6 bool) {
	r := newRig(t, vpptest.Options{HeapMB: 2048, Buffers: 32768, FewPlugins: []string{"af_packet"}, Config: "contiv { connections 2097152 }\n"})
	a, b := r.pg(""), r.pg("")
	r.cli("ip route add 10.64.0.0/10 via %s pg%d", a.v4, a.n)
	r.cli("ip route add fd00:64::/32 via %s pg%d", a.v6, a.n)
	client, frontend := "10.64.0.0", "10.96.0.1"
	backend := b.v4
	if v6 {
		client, frontend, backend = "fd00:64::", "fd00:96::1", b.v6
	}
	r.service(1, netip.AddrPortFrom(netip.MustParseAddr(frontend), 80).String(), udp, netip.AddrPortFrom(backend, 8080).String())
	r.network("10.0.0.0/8", contiv.CONTIV_CLASS_API_POD)
	r.network("fd00::/16", contiv.CONTIV_CLASS_API_POD)
	frames := func(to netip.AddrPort) (all [][]byte) {
		source := netip.MustParseAddr(client)
		for n := range flows {
			if n%1000 == 0 {
				source = source.Next()
			}
			all = append(all, ether(a.n, flow{udp, netip.AddrPortFrom(source, uint16(1024+n%1000)), to}.packet(0, make([]byte, 18))))
		}
		return all
	}
	direct := filepath.Join(t.TempDir(), "direct.pcap")
	writePcap(t, direct, frames(netip.AddrPortFrom(backend, 53))...)
	service := filepath.Join(t.TempDir(), "service.pcap")
	writePcap(t, service, frames(netip.AddrPortFrom(netip.MustParseAddr(frontend), 80))...)

	packets := max(20_000, flows)
	t.Logf("plain                %s", r.clocks(a, direct, packets, repeat))
	r.pgEndpoint(a, contiv.CONTIV_ROLE_API_UPLINK)
	t.Logf("uplink, no service   %s", r.clocks(a, direct, packets, repeat))
	t.Logf("service, new         %s", r.clocks(a, service, flows, 1))
	t.Logf("service, established %s", r.clocks(a, service, packets, repeat))
	r.pgEndpoint(b, contiv.CONTIV_ROLE_API_POD, b.v4, b.v6)
	for _, rules := range []int{1, 10, 1000} {
		r.ingressPolicy(b, rules)
		r.cli("clear contiv connections")
		t.Logf("policy of %4d rules, new         %s", rules, r.clocks(a, direct, flows, 1))
		t.Logf("policy of %4d rules, established %s", rules, r.clocks(a, direct, packets, repeat))
	}
	r.do(r.api.ContivEndpointPolicyDel(t.Context(), &contiv.ContivEndpointPolicyDel{SwIfIndex: b.index}))
	if flows == 1 {
		r.pgEndpoint(a, contiv.CONTIV_ROLE_API_POD, netip.MustParseAddr("10.64.0.1"), netip.MustParseAddr("fd00:64::1"))
		t.Logf("pod, no service      %s", r.clocks(a, direct, packets, repeat))
		t.Logf("pod, service         %s", r.clocks(a, service, packets, repeat))
	}
}

// ingressPolicy gives a generator's endpoint a policy with n rules. Only the last rule matches and allows, because the set of sources of
// the others does not contain the packets' source.
func (r *rig) ingressPolicy(g *generator, n int) {
	r.Helper()
	ctx, never := r.Context(), netip.MustParsePrefix("203.0.113.1/32")
	r.do(r.api.ContivSetAddDel(ctx, &contiv.ContivSetAddDel{IsAdd: true, ID: 1, Name: "others", Kind: contiv.CONTIV_SET_API_NETWORKS}))
	r.do(r.api.ContivSetMemberAddDel(ctx, &contiv.ContivSetMemberAddDel{IsAdd: true, SetID: 1,
		Prefix: ip_types.Prefix{Address: address(never.Addr()), Len: 32}}))
	policy := &contiv.ContivPolicySet{ID: 1, Name: "clocks", NIngress: uint32(n), NRules: uint32(n), Rules: make([]contiv.ContivRule, n)}
	for i := range policy.Rules {
		policy.Rules[i] = contiv.ContivRule{Action: contiv.CONTIV_RULE_API_DENY, Protocol: udp, Source: 1}
	}
	policy.Rules[n-1] = contiv.ContivRule{Action: contiv.CONTIV_RULE_API_ALLOW}
	r.do(r.api.ContivPolicySet(ctx, policy))
	r.do(r.api.ContivEndpointPolicySet(ctx, &contiv.ContivEndpointPolicySet{
		SwIfIndex: g.index, Name: "clocks", Ingress: contiv.CONTIV_RULE_API_ALLOW, Egress: contiv.CONTIV_RULE_API_ALLOW, NIngress: 2, NItems: 2,
		Items: []contiv.ContivTierItem{{PolicyID: 1}, {Action: contiv.CONTIV_RULE_API_DENY}},
	}))
}

// clocks sends the packets of a file several times, and reports the lowest cost per node: other load on the machine can only increase it.
func (r *rig) clocks(from *generator, pcap string, packets, times int) string {
	r.Helper()
	best := map[string]float64{}
	for range times {
		r.sent++
		stream := fmt.Sprintf("s%d", r.sent)
		r.cli("packet-generator new pcap %s source pg%d name %s limit %d", pcap, from.n, stream, packets)
		r.cli("clear runtime")
		r.cli("packet-generator enable-stream %s", stream)
		r.streamEnds()
		for line := range strings.Lines(r.cli("show runtime")) {
			f := strings.Fields(line)
			if len(f) < 7 || strings.HasPrefix(f[0], "pg-input") {
				continue
			}
			vectors, _ := strconv.ParseFloat(f[3], 64)
			each, err := strconv.ParseFloat(f[5], 64)
			if old, seen := best[f[0]]; err == nil && vectors >= float64(packets)/2 && (!seen || each < old) {
				best[f[0]] = each
			}
		}
		r.cli("packet-generator delete %s", stream)
	}
	total := 0.0
	for _, each := range best {
		total += each
	}
	return fmt.Sprintf("%6.0f clocks, of them contiv %.0f", total, best["contiv-ip4-input"]+best["contiv-ip6-input"])
}
