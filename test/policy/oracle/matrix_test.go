package oracle

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

// ownWay are the cells of the README's matrices for which kube-network-policies has another result, and the reason for ours.
var ownWay = map[string]string{
	"an unknown peer in Accept":        "it passes over the peer; the API says that such a rule matches nothing",
	"an unknown peer in Deny":          "it passes over the peer; the API says that such a rule denies everything",
	"an unknown peer in Pass":          "it passes over the peer; the API says that such a rule denies everything",
	"ingress from the own node passes": "the peer of its rule is not known: see an unknown peer in Deny",
	"a pod reaches itself":             "it sees no packet that a pod sends to itself",
	"a pod still reaches itself":       "it sees no packet that a pod sends to itself",
}

// row is a row of a matrix: policies and lines such as "+ a/api a/web tcp 80".
type row struct {
	name     string
	policies []string
	probes   []string
}

// rows parses a matrix of the README, which plugins/policy/compiler checks cell by cell.
func rows(t *testing.T, begin string) (list []row) {
	t.Helper()
	data, err := os.ReadFile("../../../plugins/policy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), begin)
	text, _, ended := strings.Cut(text, "<!-- end -->")
	if !found || !ended {
		t.Fatalf("the README has no matrix %s", begin)
	}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || cells[0] == "| cell" {
			continue
		}
		r := row{name: strings.TrimPrefix(cells[0], "| "), probes: strings.Split(strings.TrimSuffix(cells[2], " |"), "; ")}
		if cells[1] != "none" {
			r.policies = strings.Split(strings.Trim(cells[1], "`"), "` and `")
		}
		list = append(list, r)
	}
	return list
}

// matrixObjects returns the pods that the README describes, without the own node.
func matrixObjects() (*objects, map[string]netip.Addr) {
	port := func(name string, p corev1.Protocol, n int32) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, Protocol: p, ContainerPort: n}
	}
	app := func(name string) map[string]string { return map[string]string{"app": name} }
	end := newPod("a", "end", app("web"), []string{"10.0.0.3"})
	end.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	o := &objects{
		namespaces: []*corev1.Namespace{
			{ObjectMeta: meta("", "a", map[string]string{"kubernetes.io/metadata.name": "a", "team": "red"})},
			{ObjectMeta: meta("", "b", map[string]string{"kubernetes.io/metadata.name": "b", "team": "blue"})},
			{ObjectMeta: meta("", "c", nil)},
		},
		nodes: []*corev1.Node{newNode("n1", map[string]string{"role": "worker"}, "192.0.2.1"), newNode("n2", map[string]string{"role": "edge"}, "192.0.2.2")},
		pods: []*corev1.Pod{
			newPod("a", "web", app("web"), []string{"10.0.0.1", "fd00::1"}, port("http", corev1.ProtocolTCP, 80), port("dns", corev1.ProtocolUDP, 53),
				port("sig", corev1.ProtocolSCTP, 7)),
			newPod("a", "api", app("api"), []string{"10.0.0.2", "fd00::2"}, port("http", corev1.ProtocolTCP, 8080)),
			end,
			newPod("b", "web", app("web"), []string{"10.0.0.4"}),
			newPod("c", "far", app("far"), []string{"10.0.1.1"}, port("http", corev1.ProtocolTCP, 81)),
		},
	}
	at := map[string]netip.Addr{"world": netip.MustParseAddr("198.51.100.7"), "edge": netip.MustParseAddr("192.0.2.2")}
	for _, p := range o.pods {
		for i, ip := range p.Status.PodIPs {
			at[p.Namespace+"/"+p.Name+[]string{"", "6"}[i]] = netip.MustParseAddr(ip.IP)
		}
	}
	return o, at
}

func (o *objects) add(t *testing.T, name, spec string) {
	t.Helper()
	var err error
	if strings.Contains(spec, "tier:") {
		p := &npapi.ClusterNetworkPolicy{ObjectMeta: meta("", name, nil)}
		err = yaml.UnmarshalStrict([]byte(spec), &p.Spec)
		o.cluster = append(o.cluster, asServed(t, p))
	} else {
		p := &networkingv1.NetworkPolicy{ObjectMeta: meta("a", name, nil)}
		err = yaml.UnmarshalStrict([]byte(spec), &p.Spec)
		o.policies = append(o.policies, defaulted(t, p))
	}
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
}

// TestMatrix compares the cells of the README's matrices with kube-network-policies. It does not model the own node, so packets of that node
// are left out.
func TestMatrix(t *testing.T) {
	probes, differs := 0, map[string]bool{}
	for _, r := range append(rows(t, "<!-- matrix -->"), rows(t, "<!-- cluster matrix -->")...) {
		t.Run(r.name, func(t *testing.T) {
			o, at := matrixObjects()
			for i, spec := range r.policies {
				o.add(t, fmt.Sprint("p", i), spec)
			}
			judge := newReference(t, o)
			for _, line := range r.probes {
				p, known := probe(t, line, at)
				if !known {
					continue
				}
				probes++
				if got := judge.allowed(t, p); got != strings.HasPrefix(line, "+") {
					if differs[r.name] = true; ownWay[r.name] == "" {
						t.Errorf("%s: kube-network-policies says allowed %t", line, got)
					}
				}
			}
		})
	}
	t.Logf("%d packets", probes)
	if probes < 200 {
		t.Errorf("only %d packets", probes)
	}
	for name := range ownWay {
		if !differs[name] {
			t.Errorf("%s: kube-network-policies agrees", name)
		}
	}
}

// probe parses "+ a/api a/web tcp 80"; false: an end is not known.
func probe(t *testing.T, line string, at map[string]netip.Addr) (p verdict.Packet, known bool) {
	t.Helper()
	f := strings.Fields(line)
	protocols := map[string]model.Protocol{"tcp": model.TCP, "udp": model.UDP, "sctp": model.SCTP, "icmp": 1}
	from, isFrom := at[f[1]]
	to, isTo := at[f[2]]
	p = verdict.Packet{Source: from, Dest: to, Protocol: protocols[f[3]]}
	if len(f) > 4 {
		if _, err := fmt.Sscan(f[4], &p.Port); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	return p, isFrom && isTo
}
