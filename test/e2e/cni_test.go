package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	cnitypes "github.com/containernetworking/cni/pkg/types"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// The codes of CNI and of the specification of STATUS.
const (
	codeTryAgain = 11
	codeNotNow   = 50
	codeLimited  = 51
)

var allModes = []mode{tap, veth, fake, linux}

func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	each(t, allModes, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		r := newRig(t, m)
		a := r.pod("a")
		first, err := r.CNI.Add(r.ctx, a)
		r.must(err)
		b := r.add("b")[0]
		r.poolFull()
		before := r.writes()
		again, err := r.CNI.Add(r.ctx, a)
		r.must(err)
		if one, two := asJSON(t, first), asJSON(t, again); one != two {
			t.Errorf("the same ADD gives another result:\n%s\n%s", one, two)
		}
		if n := r.writes() - before; n != 0 {
			t.Errorf("an ADD that changes nothing makes %.0f requests that change VPP\n%s", n, r.requests())
		}
		r.onlyPods([]*testbed.Pod{a, b})
		for range 2 {
			r.must(r.CNI.Del(r.ctx, a))
			r.onlyPods([]*testbed.Pod{b})
		}
		r.must(b.Delete(r.ctx))
		r.must(r.CNI.Del(r.ctx, b))
		r.onlyPods(nil)
		unknown := r.pod("unknown")
		r.must(r.CNI.Del(r.ctx, unknown))
	})
}

func asJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLateDelete checks that a runtime may delete an old sandbox of a pod long after it has made
// the new one.
func TestLateDelete(t *testing.T) {
	t.Parallel()
	each(t, allModes, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		r := newRig(t, m)
		peer := r.add("peer")[0]
		older := r.add("web")[0]
		newer := r.pod("web2")
		newer.Args = older.Args // the same pod
		_, err := r.CNI.Add(r.ctx, newer)
		r.must(err)
		r.must(r.CNI.Del(r.ctx, older))
		r.onlyPods([]*testbed.Pod{peer, newer})
		if m.real {
			r.reaches(peer.Namespace, newer.IPs[0].String())
			r.reaches(newer.Namespace, peer.IPs[0].String())
		}
	})
}

func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	each(t, allModes, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		r := newRig(t, m)
		pods := r.add("keep1", "drop1", "keep2", "drop2", "vanished")
		r.must(pods[4].Delete(r.ctx))
		kept := []*testbed.Pod{pods[0], pods[2]}
		r.must(r.CNI.GC(r.ctx, kept...))
		r.onlyPods(kept)
		if m.real {
			r.reaches(kept[0].Namespace, kept[1].IPs[0].String())
		}
		r.must(r.CNI.GC(r.ctx, kept...))
		r.onlyPods(kept)
	})
}

func TestStatus(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap}, func(t *testing.T, m mode) {
		r := newRig(t, m)
		r.must(r.CNI.Status(r.ctx))
		r.VPP.Kill()
		r.within(5*time.Second, "STATUS tells that VPP is down", func() error {
			if err := r.CNI.Status(r.ctx); code(err) != codeLimited {
				return fmt.Errorf("code %d: %w", code(err), errors.Join(err, errors.New("want 51")))
			}
			return nil
		})
		r.wantCode(r.CNI.Status(r.ctx), codeLimited, "VPP")
		if _, err := r.Get(r.ctx, "/readiness"); err == nil {
			t.Error("the agent is ready without VPP")
		}
		if _, err := r.Get(r.ctx, "/liveness"); err != nil {
			t.Errorf("an agent without VPP would be restarted: %v", err)
		}
		r.must(r.VPP.Run(r.ctx))
		r.within(10*time.Second, "STATUS is good again", func() error { return r.CNI.Status(r.ctx) })
		r.must(r.Agent.Kill())
		start := time.Now()
		r.wantCode(r.CNI.Status(r.ctx), codeNotNow, "contiv-agent")
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("STATUS without an agent took %s", took)
		}
	})
}

func TestNoAddressLeft(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, fake, linux}, func(t *testing.T, m mode) {
		r := newRig(t, m, config("ipamConfig:\n  podSubnetCIDR: 10.1.0.0/16\n  podSubnetOneNodePrefixLen: 29\n"))
		pods := r.add("a", "b", "c", "d") // 8 addresses without network, gateway, NAT loopback and broadcast
		late := r.pod("late")
		_, err := r.CNI.Add(r.ctx, late)
		r.wantCode(err, codeTryAgain, "10.1.", "/29", "in use")
		r.wantCode(r.CNI.Status(r.ctx), codeNotNow, "address")
		r.onlyPods(pods)
		r.must(r.CNI.Del(r.ctx, late))
		r.must(r.CNI.Del(r.ctx, pods[1]))
		r.must(r.CNI.Status(r.ctx))
		_, err = r.CNI.Add(r.ctx, late)
		r.must(err)
		pods[1] = late
		r.onlyPods(pods)
		if m.real {
			r.must(r.ring(5*time.Second, pods))
		}
	})
}

// damage is a change of a pod's wiring by another program.
type damage struct {
	name string
	do   func(r *rig, p *testbed.Pod) error
}

func damages(m mode) []damage {
	inPod := func(args ...string) func(*rig, *testbed.Pod) error {
		return func(r *rig, p *testbed.Pod) error {
			_, err := p.Run(r.ctx, "ip", args...)
			return err
		}
	}
	list := []damage{
		{"route removed in the pod", inPod("route", "del", "default")},
		{"address removed in the pod", func(r *rig, p *testbed.Pod) error {
			_, err := p.Run(r.ctx, "ip", "addr", "del", p.IPs[0].String()+"/32", "dev", "eth0")
			return err
		}},
		{"link down in the pod", inPod("link", "set", "eth0", "down")},
	}
	if m.linux {
		return list
	}
	return append(list, damage{"interface down in VPP", func(r *rig, p *testbed.Pod) error {
		return r.vppCLI(p, "set interface state %s down")
	}})
}

// vppCLI runs a command for the pod's interface.
func (r *rig) vppCLI(p *testbed.Pod, command string) error {
	for _, i := range r.vppInterfaces() {
		if strings.HasSuffix(i.tag, "-"+p.ContainerID) {
			out, err := r.VPP.CLI(fmt.Sprintf(command, i.name))
			if err == nil && strings.TrimSpace(out) != "" {
				err = errors.New(out)
			}
			return err
		}
	}
	return fmt.Errorf("VPP has no interface of %s", p.Name)
}

// TestCheck checks that CHECK detects damage to a pod, and that a downstream resync repairs it.
func TestCheck(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, veth, linux}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		r := newRig(t, m)
		pods := r.add("a", "b")
		a, b := pods[0], pods[1]
		r.must(r.CNI.Check(r.ctx, a))
		for _, d := range damages(m) {
			if err := d.do(r, a); err != nil {
				t.Errorf("%s: cannot be done: %v", d.name, err)
				continue
			}
			if err := a.PingOnce(r.ctx, b.IPs[0].String(), 0); err == nil {
				t.Errorf("%s: the pod can still ping", d.name)
			}
			if err := r.CNI.Check(r.ctx, a); code(err) == 0 {
				t.Errorf("%s: CHECK does not see it", d.name)
			}
			r.check(r.CNI.Check(r.ctx, b))
			if _, err := r.Post(r.ctx, "/scheduler/downstream-resync"); err != nil {
				t.Errorf("%s: downstream resync: %v", d.name, brief(err))
			}
			if err := r.CNI.Check(r.ctx, a); err != nil {
				t.Errorf("%s: CHECK after a downstream resync: %v", d.name, brief(err))
			}
			if err := r.ring(3*time.Second, pods); err != nil {
				t.Errorf("%s: not repaired: %v", d.name, err)
			}
		}
		gone := r.pod("gone")
		var e *cnitypes.Error
		if err := r.CNI.Check(r.ctx, gone); err == nil || errors.As(err, &e) && e.Code == 0 {
			t.Errorf("CHECK of a pod that was never added: %v", err)
		}
	})
}
