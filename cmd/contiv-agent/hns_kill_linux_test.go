package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/test/testbed/kubeapi"
)

// grave is the point at which an agent ends: a write to HNS, which is either not made, or made without an answer to the agent. From then on
// the agent has no effect: its calls do nothing, and the next agent gets the files as they were.
type grave struct {
	r    *windowsRig
	dead chan struct{}
	free chan struct{} // closed when the test does not need the agent any more

	mu     sync.Mutex
	at     int // number of the write; 0: the agent does not end
	made   bool
	writes int
	over   bool
	home   string // directory with the files as they were
}

var errKilled = errors.New("the agent was killed")

func newGrave(r *windowsRig) *grave {
	return &grave{r: r, dead: make(chan struct{}), free: make(chan struct{})}
}

// dig makes the running agent end at its n-th write from now on.
func (g *grave) dig(n int, made bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at, g.made, g.writes = n, made, 0
}

func (g *grave) killed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over
}

// client is the agent's client of HNS.
func (g *grave) client() *hnsmem.Client {
	return &hnsmem.Client{Before: func(c hnsmem.Call) error {
		if g.ends(c, false) {
			<-g.free
			return errKilled
		}
		return nil
	}, After: func(c hnsmem.Call) {
		if g.ends(c, true) {
			<-g.free
		}
	}}
}

// ends reports whether the agent has ended, or ends at this call.
func (g *grave) ends(c hnsmem.Call, made bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || !c.Writes() {
		return g.over
	}
	if !made {
		g.writes++
	}
	if g.at == 0 || g.writes != g.at || g.made != made {
		return false
	}
	g.over, g.home = true, g.r.c.t.TempDir()
	copyFiles(g.r.c.t, g.r.home, g.home)
	close(g.dead)
	return true
}

// next starts another agent, which gets the files from the moment when the previous one was killed. It reports whether the previous one was
// killed.
func (r *windowsRig) next() (killed bool) {
	g := r.grave
	if killed = g.killed(); killed {
		r.home = g.home
	}
	close(g.free)
	r.stop()
	r.start()
	r.c.eventually("CNI", func() error {
		_, err := r.request(cniapi.Status, "", "", "")
		return err
	})
	return killed
}

// copyFiles copies regular files: sockets end with the process.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file was renamed meanwhile
		}
		return errors.Join(err, os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o700), os.WriteFile(filepath.Join(to, rel), raw, 0o600))
	})
	if err != nil {
		t.Error(err)
	}
}

// world returns the state of HNS, without IDs, and with the address of one pod replaced by its name.
func (r *windowsRig) world(pod netip.Addr) string {
	endpoints, err := r.host.V2().ListEndpoints()
	r.c.must(err)
	balancers, err := r.host.V2().ListLoadBalancers()
	r.c.must(err)
	network, _ := r.host.Network("contiv")
	at, lines := map[string]string{}, []string{fmt.Sprintf("network %s %v %v", network.Type, network.IPAMs, sortedPolicies(network.Policies))}
	for _, e := range endpoints {
		at[e.ID] = e.IPConfigurations[0].IPAddress
		lines = append(lines, fmt.Sprintf("endpoint %v attached %v, flags %d, %v, DNS %v, %v", e.IPConfigurations, e.HostComputeNamespace != "",
			e.Flags, e.Routes, e.DNS, sortedPolicies(e.Policies)))
	}
	for _, lb := range balancers {
		var to []string
		for _, id := range lb.HostComputeEndpoints {
			to = append(to, at[id])
		}
		slices.Sort(to)
		lines = append(lines, fmt.Sprintf("balancer %v:%v to %v, flags %d", lb.FrontendVIPs, lb.PortMappings, to, lb.Flags))
	}
	for i := range lines {
		if pod.IsValid() {
			lines[i] = strings.ReplaceAll(lines[i], pod.String()+" ", "POD ")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func sortedPolicies[T any](list []T) []string {
	var out []string
	for _, p := range list {
		raw, err := json.Marshal(p)
		if err != nil {
			panic(err) // the types are ours
		}
		out = append(out, string(raw))
	}
	slices.Sort(out)
	return out
}

// same waits until HNS has the wanted state.
func (r *windowsRig) same(what, want string, pod netip.Addr) {
	r.c.t.Helper()
	r.c.eventually(what, func() error {
		if got := r.world(pod); got != want {
			return fmt.Errorf("HNS has\n%s\nwant\n%s", got, want)
		}
		return nil
	})
}

// atEachWrite repeats a change, and kills the agent before and after each of its writes to HNS. begin starts the change, end waits until the
// agent or the next one has completed it, and undo reverts it.
func (r *windowsRig) atEachWrite(begin func(), end func(what string), undo func(what string)) (writes int) {
	for _, made := range []bool{true, false} {
		for n := 1; ; n++ {
			what := fmt.Sprintf("killed at write %d, which was made: %v", n, made)
			g := r.grave
			g.dig(n, made)
			var work sync.WaitGroup
			settled := make(chan struct{})
			work.Go(func() {
				begin()
				close(settled)
			})
			select {
			case <-g.dead:
			case <-settled:
				select { // effects of the change may come later
				case <-g.dead:
				case <-time.After(700 * time.Millisecond):
				}
			}
			killed := r.next()
			work.Wait()
			end(what)
			undo(what)
			if !killed {
				break
			}
			writes++
		}
	}
	return writes
}

// TestWindowsKilledAtEachWrite: if an agent is killed before or after any write of an ADD, of a change of services, or of a policy, the next
// one completes everything: HNS ends in the same state as with one agent.
func TestWindowsKilledAtEachWrite(t *testing.T) {
	c := newWindowsCluster(t, "vxlan")
	c.linuxNode(9, "192.0.2.9/24")
	r := c.windowsNode(1)
	r.host.KeepBalancers()
	a, _ := r.add("a")
	killedInADD(r)
	killedInServices(r, a)
	killedInPolicy(r)
}

func killedInADD(r *windowsRig) {
	c := r.c
	c.must(c.api.Put(kubeapi.Pod(r.name, "b", nil)))
	ns := r.namespace()
	var pod netip.Addr
	add := func() error {
		res, err := r.request(cniapi.Add, "b", "b", ns)
		if err == nil {
			pod = res.IPs[0].Address.Addr()
		}
		return err
	}
	empty := r.world(netip.Addr{})
	c.must(add())
	connected := r.world(pod)
	remove := func(what string) {
		if _, err := r.request(cniapi.Del, "b", "b", ns); err != nil {
			c.t.Errorf("%s: DEL: %v", what, err)
		}
		r.same(what+": DEL", empty, netip.Addr{})
	}
	remove("at first")
	again := 0
	n := r.atEachWrite(func() { _ = add() }, func(what string) {
		if again++; again%2 == 0 {
			return // the runtime gives up: DEL follows
		}
		if err := add(); err != nil {
			c.t.Errorf("%s: the same ADD again: %v", what, err)
		}
		r.same(what+": ADD", connected, pod)
	}, remove)
	if n < 6 {
		c.t.Errorf("an ADD was killed %d times only", n)
	}
}

func killedInServices(r *windowsRig, a netip.Addr) {
	c, linux := r.c, netip.MustParseAddr("10.1.9.5")
	web := kubeapi.Service("web", []netip.Addr{netip.MustParseAddr("10.96.0.80")}, kubeapi.Port(corev1.ProtocolTCP, 80))
	other := kubeapi.Service("other", []netip.Addr{netip.MustParseAddr("10.96.0.81")}, kubeapi.Port(corev1.ProtocolTCP, 81))
	slice := func(svc *corev1.Service, addrs ...netip.Addr) *discoveryv1.EndpointSlice {
		var list []discoveryv1.Endpoint
		for _, at := range addrs {
			node := r.name
			if at == linux {
				node = "linux"
			}
			list = append(list, kubeapi.Endpoint(node, at))
		}
		return kubeapi.Slice(svc, discoveryv1.AddressTypeIPv4, 8080, list...)
	}
	leads := func(vip string, port uint16, backends int) func() error {
		return func() error {
			_, to, err := r.balancer(vip, port)
			if err == nil && len(to) != backends {
				err = fmt.Errorf("leads to %v, want %d backends", to, backends)
			}
			return err
		}
	}
	c.must(c.api.Put(web, slice(web, a)))
	c.eventually("a service", leads("10.96.0.80", 80, 1))
	before := r.world(netip.Addr{})
	change := func() { c.must(c.api.Put(slice(web, a, linux), other, slice(other, linux))) }
	back := func(what string) {
		c.must(errors.Join(c.api.Put(slice(web, a)), c.api.Delete(slice(other)), c.api.Delete(other)))
		r.same(what+": undone", before, netip.Addr{})
	}
	change()
	c.eventually("the service", leads("10.96.0.80", 80, 2))
	c.eventually("another service", leads("10.96.0.81", 81, 1))
	changed := r.world(netip.Addr{})
	back("at first")
	if n := r.atEachWrite(change, func(what string) { r.same(what, changed, netip.Addr{}) }, back); n < 4 {
		c.t.Errorf("a change of services was killed %d times only", n)
	}
}

func killedInPolicy(r *windowsRig) {
	c := r.c
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "isolate"},
		Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}}
	open := r.world(netip.Addr{})
	c.must(c.api.Put(p))
	c.eventually("a policy", func() error {
		if r.world(netip.Addr{}) == open {
			return errors.New("nothing has changed")
		}
		return nil
	})
	closed := r.world(netip.Addr{})
	back := func(what string) {
		c.must(c.api.Delete(p))
		r.same(what+": undone", open, netip.Addr{})
	}
	back("at first")
	if n := r.atEachWrite(func() { c.must(c.api.Put(p)) }, func(what string) { r.same(what, closed, netip.Addr{}) }, back); n < 2 {
		c.t.Errorf("a change of policy was killed %d times only", n)
	}
}
