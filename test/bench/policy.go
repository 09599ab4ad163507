package main

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/compiler"
	"contiv.dev/vswitch/plugins/policy/model"
)

const (
	policyNamespaces = 100
	policyPolicies   = 1000
	policyLocal      = 100 // pods of this node, one per namespace
	policyRounds     = 2000
)

// policyCluster is a cluster with policies, each of which selects a pod of this node. Each policy allows connections from pods of its
// namespace, from pods of namespaces by both selectors, and from a network.
type policyCluster struct {
	pods       []*kube.Pod
	namespaces []*kube.Namespace
	policies   []*kube.Policy
}

func newPolicyCluster(pods int) *policyCluster {
	c := &policyCluster{}
	for i := range policyNamespaces {
		c.namespaces = append(c.namespaces, &kube.Namespace{Name: namespaceName(i), Labels: map[string]string{
			"kubernetes.io/metadata.name": namespaceName(i), "team": fmt.Sprint("team", i%10)}})
	}
	for i := range pods {
		c.pods = append(c.pods, &kube.Pod{Namespace: namespaceName(i % policyNamespaces), Name: fmt.Sprint("pod", i),
			Ips:    []string{netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()},
			Labels: map[string]string{"app": fmt.Sprint("app", i/policyNamespaces%20), "version": fmt.Sprint(i % 3), "pod": fmt.Sprint(i)}})
	}
	for i := range policyPolicies {
		app := func(n int) *kube.LabelSelector {
			return &kube.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("app", n%20)}}
		}
		c.policies = append(c.policies, &kube.Policy{Namespace: namespaceName(i % policyNamespaces), Name: fmt.Sprint("policy", i),
			Pods: &kube.LabelSelector{}, Ingress: true, IngressRules: []*kube.PolicyRule{{
				Ports: []*kube.PolicyPort{{Port: 80}, {Port: 8080, EndPort: 8090}},
				Peers: []*kube.PolicyPeer{{Pods: app(i / policyNamespaces)},
					{Namespaces: &kube.LabelSelector{MatchLabels: map[string]string{"team": fmt.Sprint("team", i%10)}}, Pods: app(i / 50)},
					{IpBlock: &kube.IPBlock{Cidr: "192.0.2.0/24", Except: []string{"192.0.2.128/25"}}}},
			}}})
	}
	return c
}

func namespaceName(i int) string { return fmt.Sprint("namespace", i) }

func (c *policyCluster) compile() *compiler.Compiler {
	k := compiler.New()
	for _, n := range c.namespaces {
		k.SetNamespace(n.Name, n)
	}
	for i, p := range c.pods {
		id := model.EndpointID{Namespace: p.Namespace, Name: p.Name}
		k.SetPod(id, p)
		if i < policyLocal {
			k.SetEndpoint(compiler.Local{ID: id})
		}
	}
	for _, p := range c.policies {
		k.SetPolicy(p.Namespace, p.Name, p)
	}
	return k
}

// relabel changes a label of a pod of another node, and returns how long the compiler takes for it.
func (c *policyCluster) relabel(k *compiler.Compiler, round int) (time.Duration, error) {
	old := c.pods[policyLocal+round%(len(c.pods)-policyLocal)]
	p := &kube.Pod{Namespace: old.Namespace, Name: old.Name, Ips: old.Ips, Labels: map[string]string{
		"app": fmt.Sprint("app", round%20), "version": old.Labels["version"], "pod": old.Labels["pod"]}}
	start := time.Now()
	k.SetPod(model.EndpointID{Namespace: p.Namespace, Name: p.Name}, p)
	change := k.Flush()
	took := time.Since(start)
	c.pods[policyLocal+round%(len(c.pods)-policyLocal)] = p
	if old.Labels["app"] != p.Labels["app"] && len(change.Members) == 0 {
		return took, fmt.Errorf("a label change of pod %s/%s changed no set", p.Namespace, p.Name)
	}
	return took, nil
}

// benchPolicy measures the compiler, the processing of policies in VPP, and agents.
func benchPolicy(ctx context.Context, e *env) error {
	for _, part := range []struct {
		name string
		run  func(context.Context, *env) error
	}{{"compiler", policyCompiler}, {"members", policyMembers}, {"clocks", policyClocks}, {"agents", benchPolicyNodes}} {
		if !selected(e.policyParts, part.name) {
			continue
		}
		fmt.Printf("   -- %s, load average %s\n", part.name, loadAverage())
		if err := part.run(ctx, e); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// policyCompiler compiles policies from scratch, and processes label changes among few and many pods.
func policyCompiler(_ context.Context, e *env) error {
	small, large := newPolicyCluster(1000), newPolicyCluster(10000)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	many := large.compile()
	change := many.Flush()
	cold := time.Since(start)
	members := 0
	for _, m := range change.Members {
		members += len(m.Added)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	fmt.Printf("   %d policies, %d pods: %s cold; %d sets with %d members; %d bytes per pod\n", policyPolicies, len(large.pods), ms(cold),
		len(change.Sets), members, (after.HeapAlloc-before.HeapAlloc)/uint64(len(large.pods)))
	runtime.KeepAlive(change)
	few := small.compile()
	few.Flush()
	var among [2][]time.Duration
	for round := range policyRounds { // in turns, so that disturbances affect both
		for i, side := range []struct {
			c *policyCluster
			k *compiler.Compiler
		}{{small, few}, {large, many}} {
			took, err := side.c.relabel(side.k, round)
			if err != nil {
				return err
			}
			among[i] = append(among[i], took)
		}
	}
	for i := range among {
		slices.Sort(among[i])
	}
	fmt.Printf("   a label change: among %d pods p50 %v p99 %v, among %d pods p50 %v p99 %v\n", len(small.pods), percentile(among[0], 50),
		percentile(among[0], 99), len(large.pods), percentile(among[1], 50), percentile(among[1], 99))
	e.ratio("label change among 10 000 pods to 1 000", milliseconds("10 000 pods", percentile(among[1], 50)),
		milliseconds("1 000 pods", percentile(among[0], 50)))
	return nil
}
