package cluster

import (
	"fmt"
	"testing"

	"contiv.dev/vswitch/internal/testbed"
)

// TestMesh: all pods reach all pods, hosts and the other nodes' management addresses; a node that joins is connected.
func TestMesh(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m, 2)
		var pods []*testbed.Pod
		for i, n := range w.Nodes {
			pods = append(pods, w.pod(n, fmt.Sprintf("a%d", i)))
		}
		pods = append(pods, w.pod(w.Nodes[0], "b"))
		w.mesh(pods)
		n3, err := w.AddNode(w.ctx)
		w.must(err)
		pods = append(pods, w.pod(n3, "late"))
		w.mesh(pods)
		for i, n := range w.Nodes {
			for _, p := range pods {
				w.must(w.reach(n.Namespace, p.IPs[0].String()))
				w.must(w.reach(p.Namespace, testbed.MgmtAddress(i)))
			}
		}
	})
}
