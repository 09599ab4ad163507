package cnat

import (
	"fmt"
	"strings"
	"testing"

	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hostend"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// aliasesOf lets the host be told of aliases; the result is a line each.
func aliasesOf(r *Renderer) (list func() string, told func() int) {
	var have [2][]hostend.Alias
	n := 0
	r.SetAliases = func(ipv6 bool, list []hostend.Alias) {
		have[familyOf(ipv6)] = list
		n++
	}
	return func() string {
		var lines []string
		for _, a := range append(have[0], have[1]...) {
			lines = append(lines, fmt.Sprintf("%s udp %t -> %s", a.At, a.UDP, a.To))
		}
		return strings.Join(lines, "\n")
	}, func() int { return n }
}

func localOutside(s *renderer.ContivService) {
	s.TrafficPolicy, s.ExternalIPs = renderer.NodeLocal, ips("2001:db8::1", "203.0.113.1")
	s.Ports["http"].NodePort = 30080
}

// The host's own processes go to the cluster IP where clients outside have local backends only.
func TestAliases(t *testing.T) {
	plain, _ := newRenderer(renderer.FamilyIPv6)
	list, told := aliasesOf(plain)
	r := rendertest.Resolve(plain)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, lines ...string) {
		t.Helper()
		if got := list(); got != strings.Join(lines, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, strings.Join(lines, "\n"))
		}
	}
	local := []string{
		"[2001:db8::1]:80 udp false -> [fd00:96::1]:80", "[fd00:16::1]:30080 udp false -> [fd00:96::1]:80",
		"[fd00:17::1]:30080 udp false -> [fd00:96::1]:80",
	}
	ev := resyncOf(svc("b"))
	ev.LocalNodeIPs = ips("fd00:16::1")
	must(r.Resync(ev))
	if want("policy Cluster"); told() != 1 {
		t.Errorf("told %d times", told())
	}
	must(r.UpdateService(nil, svc("b", localOutside), nil))
	want("policy Local", local...)
	must(r.UpdateService(nil, svc("b", localOutside, func(s *renderer.ContivService) {
		s.Backends["http"] = append(s.Backends["http"], backend("fd00:2::4", false))
	}), nil))
	if want("a backend more", local...); told() != 2 {
		t.Errorf("told %d times", told())
	}
	must(r.AddService(svc("a", func(s *renderer.ContivService) { // has the address now, and for everybody the same
		s.ClusterIPs, s.ExternalIPs = ips("fd00:96::2"), ips("2001:db8::1")
	})))
	want("another service's address", local[1:]...)
	must(r.DeleteService(svc("a"), nil))
	want("back", local...)
	for what, change := range map[string]func(*renderer.ContivService){
		"no backends":      func(s *renderer.ContivService) { s.Backends = nil },
		"cluster IP Local": func(s *renderer.ContivService) { s.InternalTrafficPolicy = renderer.NodeLocal },
		"no cluster IP":    func(s *renderer.ContivService) { s.ClusterIPs = ips("10.96.0.1") },
	} {
		must(r.UpdateService(nil, svc("b", localOutside, change), nil))
		want(what)
	}
	must(r.UpdateService(nil, svc("b", localOutside), nil))
	must(r.DeleteService(svc("b"), nil))
	want("gone")
}
