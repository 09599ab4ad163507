package large_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/policy/large"
	"contiv.dev/vswitch/plugins/policy/model"
)

// state is a State that counts how often pods are read.
type state struct {
	data api.KubeStateData
	pods int
}

func (s *state) Count(keyword string) int { return len(s.data[keyword]) }

func (s *state) Objects(keywords ...string) api.KubeStateData {
	out := api.KubeStateData{}
	for _, keyword := range keywords {
		if out[keyword] = s.data[keyword]; keyword == kube.PodKeyword {
			s.pods++
		}
	}
	return out
}

func (s *state) put(keyword, namespace, name string, object proto.Message) {
	if s.data[keyword] == nil {
		s.data[keyword] = api.KeyValuePairs{}
	}
	s.data[keyword][kube.Key(keyword, namespace, name)] = object
}

func (s *state) pod(i int) {
	s.put(kube.PodKeyword, "ns", fmt.Sprint("p", i), &kube.Pod{Namespace: "ns", Name: fmt.Sprint("p", i), Uid: fmt.Sprint("p", i), Ips: []string{fmt.Sprint("10.0.0.", i+1)}})
}

func (s *state) policy(name, namespace string) {
	s.put(kube.ClusterPolicyKeyword, "", name, &kube.ClusterPolicy{Name: name, Uid: name, Namespaces: &kube.LabelSelector{}, Pods: &kube.LabelSelector{},
		IngressRules: []*kube.PolicyRule{{Peers: []*kube.PolicyPeer{{Pods: &kube.LabelSelector{},
			Namespaces: &kube.LabelSelector{MatchLabels: map[string]string{"of": namespace}}}}}}})
}

// TestFindIn checks that a policy with a set over the limit is found, and one with a smaller set is not; a set that was too large counts as
// small again at a sixteenth below the limit. Pods are not read if no set can be that large.
func TestFindIn(t *testing.T) {
	s, find := &state{data: api.KubeStateData{}}, &large.Finder{}
	want := func(names string) {
		t.Helper()
		got := find.FindIn(s, 32)
		if text := strings.Join(slices.Sorted(maps.Keys(got)), " "); text != names {
			t.Errorf("found are %q, want %q", text, names)
		}
		for name, text := range got {
			if !strings.HasPrefix(text, "a set has more than 32 members: ") || !strings.Contains(text, "--policy-set-limit") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	for i := range 33 {
		s.pod(i)
	}
	s.put(kube.NamespaceKeyword, "", "ns", &kube.Namespace{Name: "ns", Labels: map[string]string{"of": "many"}})
	want("")
	if s.pods != 0 {
		t.Error("pods are read though there is no policy")
	}
	s.policy("many", "many")
	s.policy("few", "few")
	want("many")
	for i := 32; i > 30; i-- {
		delete(s.data[kube.PodKeyword], kube.Key(kube.PodKeyword, "ns", fmt.Sprint("p", i)))
	}
	want("many")
	delete(s.data[kube.PodKeyword], kube.Key(kube.PodKeyword, "ns", "p30"))
	want("")
	s.pod(30)
	want("")
	for i := 30; i > 13; i-- {
		delete(s.data[kube.PodKeyword], kube.Key(kube.PodKeyword, "ns", fmt.Sprint("p", i)))
	}
	before := s.pods
	if want(""); s.pods != before {
		t.Error("pods are read though there are too few")
	}
	nodes := &kube.Node{Name: "n1"}
	for i := range 33 {
		nodes.Addresses = append(nodes.Addresses, fmt.Sprint("192.0.2.", i))
	}
	s.put(kube.NodeKeyword, "", "n1", nodes)
	if want(""); s.pods == before {
		t.Error("the addresses of nodes do not count")
	}
}

// TestCheckLimit checks that the flag must be between zero and the maximum.
func TestCheckLimit(t *testing.T) {
	for limit, good := range map[int]bool{-1: false, 0: true, model.MaxMembers: true, model.MaxMembers + 1: false} {
		if err := large.CheckLimit(limit); (err == nil) != good {
			t.Errorf("%d: %v", limit, err)
		}
	}
}
