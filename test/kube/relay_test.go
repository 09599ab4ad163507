package kube

import (
	"fmt"
	"strings"
	"time"
)

// testRelay checks that the agents receive the state of Kubernetes from contiv-ksr only, and that the other replica takes
// over when the leading one is killed.
func testRelay(w *world) {
	w.kubectl("-n", agentNamespace, "rollout", "status", "deployment/contiv-ksr", "--timeout=60s")
	pods := w.webPods("relayed", 1)
	s := w.service("relayed")
	w.everywhere(s, pods, w.namesOf("relayed"))
	for i, n := range w.nodes { // one of the replicas leads
		w.must(n.endAll(w.ctx, "contiv-ksr", 9))
		name := fmt.Sprintf("relayed-more-%d", i)
		w.create(webPod(name, "relayed", n.name))
		start := time.Now()
		w.readyPods("relayed", len(pods)+i+1)
		w.spread(pods[0].Metadata.Name, pods[0].ns, hostPort(s.Spec.ClusterIPs[0], 80), w.namesOf("relayed"))
		w.t.Logf("contiv-ksr of %s killed: a new pod serves %s after it was made", n.name, since(start))
	}
	// Agents have no right to watch; an attempt would be rejected.
	out, err := kubectl(w.ctx, nil, "auth", "can-i", "watch", "services", "--as="+agentUser)
	if err == nil || !strings.HasPrefix(out, "no") {
		w.t.Errorf("may agents watch services? %q, %v", out, err)
	}
}
