package kube

import (
	"errors"
	"fmt"
	"time"
)

// testReboot turns the node with etcd off and on again. Pods on the other node continue; pods of the node start again, with
// new addresses, and are served.
func testReboot(w *world) {
	pods := w.webPods("steady", 2)
	n := w.nodes[0]
	var there []*client // pods on the other node
	for _, p := range pods {
		if p.Spec.NodeName != n.name {
			there = append(there, p)
		}
	}
	s := w.service("steady")
	stream := w.startStream("pods of the other node", there[0].ns, there[1].v4())
	start := time.Now()
	w.must(lab(w.ctx, nil, "node-down.sh", fmt.Sprint(n.i)))
	w.must(lab(w.ctx, w.labEnv(), "node-up.sh", fmt.Sprint(n.i)))
	w.within(time.Minute, n.name+" runs", func() error {
		again, err := newNode(n.i)
		if err == nil {
			n.init, n.host = again.init, again.host
		}
		return err
	})
	w.within(3*time.Minute, n.name+": the agent is ready", func() error { return n.agentReady(w.ctx) })
	w.t.Logf("%s: the agent is ready %s after the power went off", n.name, since(start))
	w.within(3*time.Minute, "the pods of "+n.name+" have new addresses", func() error {
		list, err := w.pods(w.ctx, "steady")
		if err != nil {
			return err
		}
		for _, p := range list {
			if _, err := w.node(p.Spec.NodeName).podNamespace(family(p.ips(), false)); err != nil {
				return err
			}
			if !p.is("Ready") {
				return errors.New(p.Metadata.Name + " is not ready")
			}
		}
		return allReady(list, len(pods))
	})
	w.t.Logf("%s: its pods are ready after %s", n.name, since(start))
	w.unhurt(stream)
	pods = w.readyPods("steady", len(pods))
	for _, from := range pods {
		for _, to := range pods {
			w.reaches(from, to)
		}
	}
	w.everywhere(s, pods, w.namesOf("steady"))
}
