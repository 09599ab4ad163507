package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/lab"
	"contiv.dev/vswitch/test/testbed/poll"
)

const (
	policyManyPods  = 100    // pods of a node that a policy selects
	policyWatched   = 10     // pods among them to which probes are sent
	policyFlips     = 200    // events; enough for a p99
	policyMany      = 14_000 // policies
	policyAdds      = 20     // with and without policy, in turns
	policyRemote    = 20_000 // pods of other nodes
	policySamples   = 20
	policyProbePort = 7
	policyProbe     = time.Millisecond // between probes to a pod
)

// policyNode is a node with an agent, and the state of the measurements on it.
type policyNode struct {
	*lab.Lab
	env     *env
	name    string // of the dataplane
	client  *testbed.Pod
	pods    []*testbed.Pod
	made    []*testbed.Pod // all pods
	markers int
}

// benchPolicyNodes measures agents with each dataplane.
func benchPolicyNodes(ctx context.Context, e *env) error {
	sides := []string{"linux"}
	if e.vpp {
		sides = append(sides, "vpp")
	}
	var errs []error
	for _, side := range sides {
		if err := policySide(ctx, e, side); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", side, err))
		}
	}
	return errors.Join(errs...)
}

func policySide(ctx context.Context, e *env, dataplane string) error {
	opts := lab.Options{Name: "contiv-bench-p", BinDir: e.bin, Dataplane: dataplane}
	if dataplane == "vpp" {
		opts.Config = "useTAPInterfaces: true\ntapv2RxRingSize: 64\ntapv2TxRingSize: 64\n"
		opts.VPP = vpptest.Options{HeapMB: 2048, Buffers: 98304, Plugin: true}
	}
	l, err := lab.New(ctx, opts)
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))
	n := &policyNode{Lab: l, env: e, name: dataplane}
	defer n.deletePods(context.WithoutCancel(ctx))
	if n.client, _, err = n.pod(ctx, "client", "client"); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{{"adds", n.adds}, {"events", n.events}, {"restart", n.restart}, {"remote", n.remote}, {"many", n.many}} {
		if !selected(e.policySteps, step.name) {
			continue
		}
		if err := step.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pod adds a pod of the first node with a label app.
func (n *policyNode) pod(ctx context.Context, name, app string) (p *testbed.Pod, took time.Duration, err error) {
	if err := n.object(name, app, nil); err != nil {
		return nil, 0, err
	}
	if p, err = n.Nodes[0].NewPod(ctx, name); err != nil {
		return nil, 0, err
	}
	n.made = append(n.made, p)
	begin := time.Now()
	if _, err := n.Nodes[0].CNI.Add(ctx, p); err != nil {
		return nil, 0, err
	}
	took = time.Since(begin)
	return p, took, n.object(name, app, p.IPs)
}

func (n *policyNode) deletePods(ctx context.Context) {
	for _, p := range n.made {
		_ = p.Delete(ctx) // the pod may have been deleted already
	}
}

func (n *policyNode) object(name, app string, addrs []netip.Addr) error {
	o := kubeapi.Pod(n.Nodes[0].Name, name, addrs)
	o.Labels = map[string]string{"app": app}
	return n.API.Put(o)
}

// policy puts a policy; an empty text deletes it.
func (n *policyNode) policy(name, spec string) error {
	np := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if spec == "" {
		return n.API.Delete(np)
	}
	if err := yaml.UnmarshalStrict([]byte(spec), &np.Spec); err != nil {
		return err
	}
	return n.API.Put(np)
}

// adds compares the ADD of a pod that a policy selects with that of a pod that no policy selects.
func (n *policyNode) adds(ctx context.Context) (err error) {
	if err := n.policy("add", `{podSelector: {matchLabels: {app: add}}, ingress: [{from: [{podSelector: {matchLabels: {app: client}}}], ports: [{port: 80}]}]}`); err != nil {
		return err
	}
	var took [2][]time.Duration
	for i := range policyAdds {
		for side, app := range []string{"none", "add"} {
			name := fmt.Sprintf("%s%d", app, i)
			p, d, err := n.pod(ctx, name, app)
			if err != nil {
				return err
			}
			took[side] = append(took[side], d)
			if err := errors.Join(n.API.Delete(kubeapi.Pod(n.Nodes[0].Name, name, p.IPs)), n.Nodes[0].DeletePod(ctx, p)); err != nil {
				return err
			}
		}
	}
	n.env.ratio(n.name+": ADD with policy to ADD without (aim <= 1.1)", milliseconds("with", median(took[1])), milliseconds("without", median(took[0])))
	return n.policy("add", "")
}

// events measures how long a change of a policy of many pods takes from the API server until packets are affected.
func (n *policyNode) events(ctx context.Context) error {
	for i := range policyManyPods {
		p, _, err := n.pod(ctx, fmt.Sprint("web", i), "web")
		if err != nil {
			return fmt.Errorf("pod %d: %w", i, err)
		}
		n.pods = append(n.pods, p)
	}
	var watched []*testbed.Pod
	for i := range policyWatched {
		watched = append(watched, n.pods[i*(len(n.pods)-1)/(policyWatched-1)])
	}
	p, stop, err := n.watch(watched)
	if err != nil {
		return err
	}
	defer stop()
	if err := pause(ctx, 2*time.Second); err != nil { // wait until neighbours are resolved
		return err
	}
	var closes, opens []time.Duration
	const settle = 600 * time.Millisecond
	for range policyFlips {
		for _, open := range []bool{false, true} {
			event := time.Now()
			spec := `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: other}}}]}]}`
			if open {
				spec = ""
			}
			if err := n.policy("web", spec); err != nil {
				return err
			}
			if err := pause(ctx, settle); err != nil {
				return err
			}
			took := p.enforced(event, event.Add(settle-50*time.Millisecond), open)
			if open {
				opens = append(opens, took)
			} else {
				closes = append(closes, took)
			}
		}
	}
	for _, side := range []struct {
		what string
		took []time.Duration
	}{{"denied", closes}, {"allowed again", opens}} {
		slices.Sort(side.took)
		fmt.Printf("   %s: %d pods %s: p50 %s p90 %s p99 %s (load average %s)\n", n.name, policyManyPods, side.what, ms(percentile(side.took, 50)),
			ms(percentile(side.took, 90)), ms(percentile(side.took, 99)), loadAverage())
		n.env.ratio(n.name+": event to 100 pods "+side.what+", p99 to 20 ms (aim <= 1)", milliseconds("p99", percentile(side.took, 99)),
			milliseconds("aim", 20*time.Millisecond))
	}
	return nil
}

// handled waits until the agent has handled all changes that the API server has sent so far: it handles one change after the other.
func (n *policyNode) handled(ctx context.Context) error {
	n.markers++
	name := fmt.Sprintf("marker-%04d", n.markers)
	if err := n.policy(name, `{podSelector: {matchLabels: {app: none}}}`); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err := poll.Until(ctx, 100*time.Millisecond, func() error { // the marker may come with a resync, which names no policy
		text, err := n.Nodes[0].Get(ctx, "/contiv/v1/policies")
		if err == nil && !strings.Contains(text, name) {
			err = fmt.Errorf("policy %s is not handled", name)
		}
		return err
	})
	return errors.Join(err, n.policy(name, ""))
}

// restart kills the agent of a node whose pods have policies, and counts the writes of the next agent.
func (n *policyNode) restart(ctx context.Context) error {
	if err := n.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: other}}}]}]}`); err != nil {
		return err
	}
	if err := n.handled(ctx); err != nil {
		return err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // wait for removals after the grace period, and for the local copy to be written
		return err
	}
	if err := n.Nodes[0].Agent.Kill(); err != nil {
		return err
	}
	begin := time.Now()
	if err := n.Nodes[0].StartAgent(ctx); err != nil {
		return err
	}
	took := time.Since(begin)
	writes, err := n.Nodes[0].Metric(ctx, map[bool]string{true: "contiv_vpp_writes_total", false: "contiv_linux_writes_total"}[n.name == "vpp"])
	fmt.Printf("   %s: agent with %d pods under policy killed: ready after %s, %.0f writes (aim 0)\n", n.name, policyManyPods, ms(took), writes)
	return errors.Join(err, n.policy("web", ""))
}

// many measures how long a new pod waits for its first answer when very many policies exist and all, or only few, select it.
func (n *policyNode) many(ctx context.Context) error {
	for i := range policyMany {
		app := "few"
		if i >= 14 {
			app = "many"
		}
		spec := fmt.Sprintf(`{podSelector: {matchExpressions: [{key: app, operator: In, values: [%s, many]}]}, policyTypes: [Egress],
			egress: [{to: [{ipBlock: {cidr: 198.%d.%d.%d/32}}]}%s]}`, app, 18+i>>16, i>>8&255, i&255,
			map[bool]string{true: `, {to: [{podSelector: {matchLabels: {app: client}}}]}`}[i == 0])
		if err := n.policy(fmt.Sprint("many", i), spec); err != nil {
			return err
		}
	}
	if err := n.handled(ctx); err != nil {
		return err
	}
	var plain time.Duration
	for _, app := range []string{"plain", "few", "many"} {
		busy, err := n.Nodes[0].Metric(ctx, "process_cpu_seconds_total")
		if err != nil {
			return err
		}
		begin := time.Now()
		p, _, err := n.pod(ctx, "egress-"+app, app)
		if err != nil {
			fmt.Printf("   %s: a pod with label app=%s: no egress after %s: %s\n", n.name, app, ms(time.Since(begin)), firstLines(err.Error(), 1))
			continue
		}
		err = poll.Until(ctx, time.Millisecond, func() error { return p.PingOnce(ctx, n.client.IPs[0].String(), 0) })
		if err != nil {
			return err
		}
		took := time.Since(begin)
		until, err := n.Nodes[0].Metric(ctx, "process_cpu_seconds_total")
		if err != nil {
			return err
		}
		if app == "plain" {
			plain = took
			continue
		}
		what := map[string]string{"few": "14 of 14 000 policies select", "many": "14 000 policies select"}[app]
		fmt.Printf("   %s: a pod that %s: egress works after %s (aim < 2 s); the agent's processor time is %.2f s\n", n.name, what, ms(took), until-busy)
		n.env.ratio(n.name+": until egress works, "+what+" it, to none", milliseconds("with", took), milliseconds("without", plain))
	}
	return nil
}

// remote measures the agent's memory for pods of other nodes.
func (n *policyNode) remote(ctx context.Context) error {
	memory := func() (least float64, err error) { // the minimum of several measurements, since there is always some garbage
		for i := range policySamples {
			if err := pause(ctx, time.Second); err != nil {
				return 0, err
			}
			bytes, err := n.Nodes[0].Metric(ctx, "go_memstats_heap_alloc_bytes")
			if err != nil {
				return 0, err
			}
			if i == 0 || bytes < least {
				least = bytes
			}
		}
		return least, nil
	}
	before, err := memory()
	if err != nil {
		return err
	}
	for i := range policyRemote {
		a := netip.AddrFrom4([4]byte{10, 1, byte(64 + i>>8), byte(i)})
		o := kubeapi.Pod("other-node", fmt.Sprint("remote", i), []netip.Addr{a})
		o.Labels = map[string]string{"app": fmt.Sprint("app", i%20), "version": fmt.Sprint(i % 3)}
		if err := n.API.Put(o); err != nil {
			return err
		}
	}
	if err := n.handled(ctx); err != nil {
		return err
	}
	after, err := memory()
	if err != nil {
		return err
	}
	each := (after - before) / policyRemote
	fmt.Printf("   %s: agent %.0f bytes per pod of other nodes\n", n.name, each)
	n.env.ratio(n.name+": agent's bytes per remote pod to 2 KiB (aim <= 1)", bar{name: "bytes per pod", value: each}, bar{name: "aim", value: 2048})
	return nil
}

// pause waits for d during a measurement, unless the benchmark is interrupted.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
