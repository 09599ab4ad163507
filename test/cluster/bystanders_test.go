package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
)

// TestBystanders checks that pods lose no packet while other pods come and go on their nodes, a third node joins and leaves, and agents are killed.
func TestBystanders(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		const took, every = 5 * time.Second, 2 * time.Millisecond
		w := newWorld(t, m, 3)
		pods := w.podPerNode()
		pods = append(pods, w.pod(w.Nodes[0], "beside"))
		w.mesh(pods)
		type flow struct {
			name   string
			result netns.PingResult
			err    error
		}
		var flows []*flow
		var pings, churn sync.WaitGroup
		ctx, stop := context.WithTimeout(w.ctx, took-time.Second)
		defer stop()
		for _, to := range []*testbed.Pod{pods[1], pods[3]} {
			for _, ip := range to.IPs {
				f := &flow{name: to.Name + " " + ip.String()}
				flows = append(flows, f)
				pings.Go(func() { f.result, f.err = pods[0].Ping(w.ctx, ip.String(), int(took/every), every) })
			}
		}
		for i := range 6 {
			churn.Go(func() { w.churn(ctx, w.Nodes[i%2], fmt.Sprintf("churn%d", i)) })
		}
		for i := 0; ctx.Err() == nil; i++ {
			w.must(w.Nodes[2].Agent.Kill())
			_, err := w.Nodes[0].PostJSON(w.ctx, "/contiv/v1/nodes/release", fmt.Sprintf(`{"name": %q}`, w.Nodes[2].Name))
			w.must(err)
			w.must(w.Nodes[2].StartAgent(w.ctx))
			if n := w.Nodes[i%2]; i%3 == 2 {
				w.must(n.Agent.Kill())
				w.must(n.StartAgent(w.ctx))
			}
		}
		churn.Wait()
		pings.Wait()
		for _, f := range flows {
			t.Logf("%s: %s", f.name, f.result)
			if f.err != nil || f.result.Lost() > 0 || f.result.Duplicates > 0 {
				t.Errorf("%s: %s, %v", f.name, f.result, f.err)
			}
		}
		if t.Failed() {
			w.logDrops(pods)
		}
	}, defaultVPP)
}

// logDrops logs the counters that can explain a lost packet: VPP's drops on the nodes, and those of the pods' interfaces.
func (w *world) logDrops(pods []*testbed.Pod) {
	for _, n := range w.Nodes {
		if n.VPP == nil {
			continue
		}
		for _, command := range []string{"show errors", "show interface"} {
			out, err := n.VPP.CLI(command)
			w.t.Logf("%s: %s\n%s%v", n.Name, command, out, err)
		}
	}
	for _, p := range pods {
		out, err := exec.Command("ip", "-n", p.Name, "-s", "link").CombinedOutput()
		w.t.Logf("%s\n%s%v", p.Name, out, err)
	}
}

// churn adds pods to a node and deletes them. While the agent is being started, requests fail.
func (w *world) churn(ctx context.Context, n *testbed.Node, name string) {
	added := 0
	for i := 0; ctx.Err() == nil; i++ {
		p, err := n.AddPod(w.ctx, fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			continue
		}
		added++
		for {
			if err = n.DeletePod(w.ctx, p); err == nil || w.ctx.Err() != nil {
				break
			}
		}
		if err != nil {
			w.t.Errorf("delete %s: %v", p.Name, err)
		}
	}
	if added == 0 {
		w.t.Errorf("%s: no pod came and went", name)
	}
	w.t.Logf("%s: %d pods", name, added)
}
