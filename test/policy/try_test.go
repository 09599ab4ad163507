package policy

import (
	"encoding/json"
	"slices"
	"strings"
)

// triedConnection is an open connection that a policy would end.
type triedConnection struct{ Protocol, Client, Server, From, To string }

// tried requests from both nodes what a policy would change. The policy is written as for world.policy.
func (w *world) tried(name, spec string) (pods []string, cut []triedConnection) {
	w.t.Helper()
	text := "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: " + name + ", namespace: default}\nspec: " + spec + "\n"
	if strings.Contains(spec, "tier:") {
		text = "apiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	}
	body, err := json.Marshal(map[string]string{"policy": text})
	w.must(err)
	for _, n := range w.Nodes {
		answer, err := n.PostJSON(w.ctx, "/contiv/v1/policies/try", string(body))
		w.must(err)
		var out struct {
			Changes     []struct{ Pod, After string }
			Connections []triedConnection
			Unknown     string
		}
		w.must(json.Unmarshal([]byte(answer), &out))
		if out.Unknown != "" {
			w.t.Errorf("%s: open connections are not known: %s", n.Name, out.Unknown)
		}
		for _, c := range out.Changes {
			if c.After == "denied" && !slices.Contains(pods, c.Pod) {
				pods = append(pods, c.Pod)
			}
		}
		cut = append(cut, out.Connections...)
	}
	return pods, cut
}

// predicted checks that trying a policy names the pods that it isolates, and, of the streams to web1, only those of cli1 and cli2. VPP
// does not track connections of pods without policy, so there it may name fewer.
func (w *world) predicted(spec, pod string, ports ...string) {
	w.t.Helper()
	pods, cut := w.tried("cut", spec)
	if !slices.Contains(pods, "default/"+pod) || slices.Contains(pods, "default/oth1") {
		w.t.Errorf("the policy would close %v", pods)
	}
	for _, port := range ports {
		named := slices.ContainsFunc(cut, func(c triedConnection) bool { return strings.HasSuffix(c.Server, ":"+port) })
		if !named && !w.onVPP {
			w.t.Errorf("of the connections that would end the one to port %s is missing: %v", port, cut)
		}
	}
	for _, c := range cut {
		if strings.HasPrefix(c.From, "default/oth") {
			w.t.Errorf("a connection that is allowed is said to end: %v", c)
		}
	}
}
