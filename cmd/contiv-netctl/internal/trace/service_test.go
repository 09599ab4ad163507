package trace

import (
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/service"
)

var toService = Flow{Source: flow.Source, Dest: netip.MustParseAddr("10.96.0.11"), Proto: "tcp", Port: 80}

// TestTranslation: the translated addresses of a packet to a service are found, and the packet that is its answer.
func TestTranslation(t *testing.T) {
	for file, dataplane := range map[string]string{"vpp-service.txt": "vpp", "nft-service.txt": "linux"} {
		s := Read("n1", &diag.Capture{Dataplane: dataplane, Text: recorded(t, file), Interfaces: interfaces()}, toService)
		if s.There.Outcome != Sent || s.There.Came.Dest.String() != "10.96.0.11:80" ||
			s.There.Left.Dest.String() != "10.1.2.2:8080" || s.There.Left.Source != s.There.Came.Source {
			t.Errorf("%s: %+v", file, s.There)
		}
		if s.Back.Outcome != Sent || s.Back.Came.Source.String() != "10.1.2.2:8080" || s.Back.Came.Dest != s.There.Came.Source {
			t.Errorf("%s: the answer %+v", file, s.Back)
		}
		if chosen, ok := ChosenBy(s, netip.MustParseAddrPort("10.96.0.11:80")); !ok || chosen.String() != "10.1.2.2:8080" {
			t.Errorf("%s: chosen %s", file, chosen)
		}
		other := toService
		other.Port = 81
		if s := Read("n1", s.Capture, other); s.There.Outcome != NotSeen {
			t.Errorf("%s: another port: %+v", file, s.There)
		}
	}
}

// TestNumbersOfPacketsAreUsedAgain: the kernel reuses the number of an earlier packet for a later one.
func TestNumbersOfPacketsAreUsedAgain(t *testing.T) {
	text := recorded(t, "nft-service.txt")
	seen := map[string]int{}
	for _, p := range nftPackets(parseNft(text)) {
		seen[p[0].id]++
		for _, l := range p[1:] {
			if l.table == ownTable && l.kind == "packet:" && l.chain == "prerouting" {
				t.Errorf("two packets in one: %+v", l)
			}
		}
	}
	if seen["8ab00ee5"] != 2 {
		t.Errorf("packets by number: %v", seen)
	}
}

func TestExplainService(t *testing.T) {
	backend := netip.MustParseAddrPort("10.1.2.2:8080")
	one := service.Resolution{Service: "default/web", Verdict: "balance",
		Backends: []service.ResolutionBackend{{Address: backend}}}
	none := service.Resolution{Service: "default/web", Verdict: "reject", Why: "it has no ready endpoint for IPv4"}
	limited := one
	limited.SourceRanges = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	chosen := func(r service.Resolution, at string) *Service {
		return &Service{Resolution: r, Chosen: netip.MustParseAddrPort(at), Node: "b", Pod: "default/c"}
	}
	sent, unseen := Path{Outcome: Sent, Out: "eth1"}, Path{Outcome: NotSeen}
	toPod := Path{Outcome: Sent, Out: "pod default/c (tap1)"}
	silent, refuses := &diag.ProbeResult{Errors: []string{"no reply"}}, &diag.ProbeResult{Errors: []string{refused}}
	for _, tc := range []struct {
		name    string
		s       *Service
		from    Path
		to      *Side
		probe   *diag.ProbeResult
		answers bool
		texts   []string
	}{
		{"answered", chosen(one, "10.1.2.2:8080"), sent, nil, &diag.ProbeResult{Received: 1, RTTMs: []float64{2}}, true,
			[]string{"delivered to pod default/c (10.1.2.2:8080 on b), reply received in 2.00 ms"}},
		{"no endpoints", &Service{Resolution: none}, Path{Outcome: Dropped, Reason: "a rule"}, nil, refuses, false,
			[]string{"default/web has no endpoint for the packet on a: it has no ready endpoint", "(a rule)", "connection refused"}},
		{"never came", &Service{Resolution: one}, unseen, nil, silent, false, []string{"did not reach the dataplane of a"}},
		{"not translated", &Service{Resolution: one}, sent, nil, silent, false, []string{"a did not translate", "1 endpoints"}},
		{"source ranges", &Service{Resolution: limited}, sent, nil, silent, false, []string{"loadBalancerSourceRanges"}},
		{"node not recorded", chosen(one, "10.1.2.2:8080"), sent, nil, silent, false,
			[]string{"nothing was recorded on the other node"}},
		{"lost on the wire", chosen(one, "10.1.2.2:8080"), sent, &Side{Node: "b", There: unseen}, silent, false,
			[]string{"a chose the backend pod default/c (10.1.2.2:8080 on b)", "lost between the nodes"}},
		{"dropped there", chosen(one, "10.1.2.2:8080"), sent, &Side{Node: "b", There: Path{Outcome: Dropped, Reason: "x"}}, silent,
			false, []string{"dropped on b: x"}},
		{"no process listens", chosen(one, "10.1.2.2:8080"), sent, &Side{Node: "b", There: toPod, Back: sent}, refuses, false,
			[]string{"nothing listens on that port"}},
		{"old session", chosen(one, "10.1.2.9:8080"), sent, &Side{Node: "b", There: unseen}, silent, false,
			[]string{"not an endpoint of the service, or not any more"}},
	} {
		v := ExplainService(tc.s, Side{Node: "a", There: tc.from}, tc.to, tc.probe)
		for _, text := range tc.texts {
			if v.Answered != tc.answers || !strings.Contains(v.Text, text) {
				t.Errorf("%s: no %q in %+v", tc.name, text, v)
			}
		}
	}
}

// TestFactsOfTheChosenBackend: facts about other backends are removed; the kernel was queried about all of them.
func TestFactsOfTheChosenBackend(t *testing.T) {
	s := Side{Facts: []diag.Fact{{Text: "general"}, {Text: "one", Backend: "10.1.2.2"}, {Text: "other", Backend: "10.1.2.3"}}}
	s.Backend(netip.MustParseAddrPort("10.1.2.2:8080"))
	if len(s.Facts) != 2 || s.Facts[1].Text != "one" {
		t.Errorf("%+v", s.Facts)
	}
}
