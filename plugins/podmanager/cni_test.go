package podmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/internal/logs"
	"contiv.dev/vswitch/plugins/controller/api"
)

func TestAddGivesACompleteResult(t *testing.T) {
	r := newRig(t)
	r.ns.set("/run/netns/c1", 7)
	req := addReq("c1", "web")
	req.Network.DNS = cniapi.DNS{Nameservers: []string{"10.96.0.10"}}
	req.Network.MTU = 1400
	req.Pod.UID = "uid1"
	res, err := r.do(req)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Interfaces) != 2 || res.Interfaces[1] != (cniapi.Interface{Name: "eth0", MAC: "02:fe:00:00:00:01", MTU: 1450, Sandbox: "/run/netns/c1"}) {
		t.Errorf("interfaces %+v", res.Interfaces)
	}
	if want := (cniapi.IP{Interface: 1, Address: netip.MustParsePrefix("10.1.0.2/32"), Gateway: netip.MustParseAddr("10.1.0.1")}); res.IPs[0] != want {
		t.Errorf("ips %+v", res.IPs)
	}
	if res.Routes[0].Dst.String() != "0.0.0.0/0" || res.DNS.Nameservers[0] != "10.96.0.10" {
		t.Errorf("got %+v", res)
	}
	a, ok := r.pm.Current(PodID{Namespace: "default", Name: "web"})
	if !ok || a.MTU != 1400 || a.PodUID != "uid1" || a.Network != "contiv" || a.NetnsInode != 7 || len(a.Addresses) != 1 {
		t.Errorf("attachment %+v", a)
	}
	r.consistent()
}

func TestAddTwiceIsOne(t *testing.T) {
	r := newRig(t)
	first := r.add("c1", "web")
	before := r.pm.LocalAttachments()[0]
	again := r.add("c1", "web")
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if after := r.pm.LocalAttachments(); len(after) != 1 || after[0].Seq != before.Seq {
		t.Errorf("attachments %v", after)
	}
	r.consistent()
}

func TestFailedRepetitionKeepsTheFirst(t *testing.T) {
	r := newRig(t)
	r.add("c1", "web")
	r.net.setFail(func(api.Event) error { return errors.New("VPP says no") })
	_, err := r.do(addReq("c1", "web"))
	wantCode(t, err, cniapi.CodeInternal, "VPP says no")
	r.net.setFail(nil)
	r.consistent()
	if len(r.pm.LocalAttachments()) != 1 {
		t.Error("attachment lost")
	}
}

func TestFailedAddLeavesNothing(t *testing.T) {
	r := newRig(t)
	for _, tc := range []struct {
		err  error
		code uint
	}{
		{errors.New("VPP says no"), cniapi.CodeInternal},
		{fmt.Errorf("subnet 10.1.1.0/24 is full: %w", ErrTryAgain), cniapi.CodeTryAgain},
	} {
		r.net.setFail(func(api.Event) error { return tc.err })
		_, err := r.do(addReq("c1", "web"))
		wantCode(t, err, tc.code, "default/web")
		r.net.setFail(nil)
		r.consistent()
		if n := len(r.pm.LocalAttachments()); n != 0 {
			t.Errorf("%d attachments", n)
		}
	}
}

// TestOneInterfaceForEachContainer: a container cannot get a second interface, whatever its name, and keeps the first one.
func TestOneInterfaceForEachContainer(t *testing.T) {
	r := newRig(t)
	for _, names := range [][2]string{{"eth0", "net1"}, {"net1", "eth0"}} {
		first, second := addReq("c1", "web"), addReq("c1", "web")
		first.IfName, second.IfName = names[0], names[1]
		if _, err := r.do(first); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := r.do(second)
			wantCode(t, err, cniapi.CodeInvalidEnvironment, "CNI_IFNAME: container c1 cannot get interface "+names[1]+": it has interface "+names[0])
			r.consistent()
		}
		if all := r.pm.LocalAttachments(); len(all) != 1 || all[0].ID.IfName != names[0] {
			t.Errorf("attachments %v", all)
		}
		second.Command = cniapi.Del
		if _, err := r.do(second); err != nil {
			t.Error(err)
		}
		if _, err := r.do(first); err != nil {
			t.Errorf("the first interface is repeated: %v", err)
		}
		first.Command = cniapi.Del
		if _, err := r.do(first); err != nil {
			t.Error(err)
		}
	}
}

func TestPodWithoutKubernetes(t *testing.T) {
	r := newRig(t)
	req := addReq("c1", "")
	req.Pod = cniapi.Pod{}
	if _, err := r.do(req); err != nil {
		t.Fatal(err)
	}
	if a, ok := r.pm.Current(PodID{Name: "c1"}); !ok || a.Pod.String() != "c1" {
		t.Errorf("attachment %v", a)
	}
}

func TestDelOfUnknownIsQuiet(t *testing.T) {
	r := newRig(t)
	r.del("c1", "web")
	if events := r.net.history(); len(events) != 0 {
		t.Errorf("events %v", events)
	}
}

func TestDelOfAVanishedNamespace(t *testing.T) {
	r := newRig(t)
	r.add("c1", "web")
	r.ns.set("/run/netns/c1", 0)
	r.net.setFail(func(ev api.Event) error {
		if _, ok := ev.(*DeletePod); ok {
			r.net.wired, r.net.addrs = map[AttachmentID]*Attachment{}, map[AttachmentID]netip.Prefix{}
			return errors.New("no such namespace")
		}
		return nil
	})
	r.del("c1", "web")
	r.del("c1", "web")
	r.net.setFail(nil)
	r.consistent()
}

// TestLateDelOfAnOlderSandbox checks for an old bug of contiv: the DEL removed the new sandbox of the pod.
func TestLateDelOfAnOlderSandbox(t *testing.T) {
	r := newRig(t)
	r.add("old", "web")
	r.add("new", "web")
	pod := PodID{Namespace: "default", Name: "web"}
	if a, _ := r.pm.Current(pod); a.ID.ContainerID != "new" {
		t.Errorf("current is %v", a)
	}
	r.add("old", "web") // a late repeated ADD does not make it current again
	if a, _ := r.pm.Current(pod); a.ID.ContainerID != "new" {
		t.Errorf("current is %v", a)
	}
	r.del("old", "web")
	a, ok := r.pm.Current(pod)
	if !ok || a.ID.ContainerID != "new" || r.net.count() != 1 {
		t.Errorf("current is %v, %d pods wired", a, r.net.count())
	}
	r.consistent()
}

func TestIDUsedForAnotherSandbox(t *testing.T) {
	for name, change := range map[string]func(*rig, *cniapi.Request){
		"netns": func(_ *rig, req *cniapi.Request) { req.Netns = "/run/netns/other" },
		"inode": func(r *rig, _ *cniapi.Request) { r.ns.set("/run/netns/c1", 999) },
		"pod":   func(_ *rig, req *cniapi.Request) { req.Pod.Name = "db" },
	} {
		r := newRig(t)
		r.add("c1", "web")
		req := addReq("c1", "web")
		change(r, req)
		if _, err := r.do(req); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		events := r.net.history()
		if len(events) != 3 || !strings.HasPrefix(events[1], "Delete Pod default/web") || !strings.HasPrefix(events[2], "Add Pod") {
			t.Errorf("%s: events %v", name, events)
		}
		r.consistent()
	}
}

// TestCallerGivesUp checks that the event is completed, the attachment stays, and the next request waits for it.
func TestCallerGivesUp(t *testing.T) {
	r := newRig(t)
	r.loop.close()
	gate := make(chan struct{})
	r.start(gate)
	gateOpen := func(n int) {
		for range n {
			gate <- struct{}{}
		}
	}
	if err := r.loop.PushEvent(api.NewDBResync()); err != nil {
		t.Fatal(err)
	}
	gateOpen(1)
	_, err := r.doFor(addReq("c1", "web"), 30*time.Millisecond)
	wantCode(t, err, cniapi.CodeTryAgain, "the agent continues in the background")
	_, err = r.doFor(delReq("c1", "web"), 30*time.Millisecond)
	wantCode(t, err, cniapi.CodeTryAgain, "still being handled")
	gateOpen(1)
	for r.net.count() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(gate)
	if res, err := r.do(addReq("c1", "web")); err != nil || res.IPs[0].Address.String() != "10.1.0.2/32" {
		t.Errorf("repetition: %v, %v", res, err)
	}
	r.consistent()
	r.del("c1", "web")
	r.consistent()
	if len(r.pm.LocalAttachments()) != 0 || len(r.pm.locks) != 0 {
		t.Error("something is left")
	}
}

func TestBeforeStartupResync(t *testing.T) {
	r := newRig(t)
	r.loop.close()
	gate := make(chan struct{})
	r.start(gate)
	_, err := r.doFor(addReq("c1", "web"), 30*time.Millisecond)
	wantCode(t, err, cniapi.CodeTryAgain, "is starting")
	_, err = r.do(&cniapi.Request{Version: 1, Command: cniapi.Status})
	wantCode(t, err, cniapi.CodeNotAvailable, "is starting")
	check := addReq("c1", "web")
	check.Command = cniapi.Check
	_, err = r.do(check)
	wantCode(t, err, cniapi.CodeTryAgain, "is starting")
	close(gate)
}

func TestAgentIsStopping(t *testing.T) {
	r := newRig(t)
	r.add("c1", "web")
	r.loop.close()
	for _, req := range []*cniapi.Request{addReq("c2", "db"), delReq("c1", "web")} {
		_, err := r.do(req)
		wantCode(t, err, cniapi.CodeTryAgain, "stopping")
		var e *cniapi.Error
		if errors.As(err, &e) && !e.Retry {
			t.Error("the client is not told to retry")
		}
	}
	if len(r.pm.locks) != 0 {
		t.Error("a lock is left")
	}
}

func TestStoreCannotBeWritten(t *testing.T) {
	r := newRig(t)
	if err := errors.Join(os.RemoveAll(r.dir), os.WriteFile(r.dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := r.do(addReq("c1", "web"))
	wantCode(t, err, cniapi.CodeInternal, r.dir)
	if err := errors.Join(os.Remove(r.dir), os.Mkdir(r.dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	r.consistent()
}

func TestPluginWithoutInterface(t *testing.T) {
	ev := NewAddPod(&Attachment{Pod: PodID{Name: "x"}})
	if _, err := buildResult(ev, cniapi.DNS{}); err == nil || !strings.Contains(err.Error(), "no plugin") {
		t.Errorf("got %v", err)
	}
	ev.Interfaces = []PodInterface{{Name: "eth0", Sandbox: "/n"}}
	ev.IPs = []PodIP{{Address: netip.MustParsePrefix("1.2.3.4/32"), Interface: 1}}
	if _, err := buildResult(ev, cniapi.DNS{}); err == nil || !strings.Contains(err.Error(), "has no interface 1") {
		t.Errorf("got %v", err)
	}
}

// TestConcurrentRequests checks that, for any requests in any order, store and dataplane are consistent, and no address is lost.
func TestConcurrentRequests(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	var n int
	r.net.setFail(func(ev api.Event) error { // every tenth ADD fails
		if _, ok := ev.(*AddPod); ok {
			if n++; n%10 == 0 {
				return errors.New("injected")
			}
		}
		return nil
	})
	const containers, requests = 40, 600
	var wg sync.WaitGroup
	for range requests {
		container := fmt.Sprintf("c%d", rng.IntN(containers))
		pod := fmt.Sprintf("pod%s", container[len(container)-1:]) // several sandboxes per pod
		req := addReq(container, pod)
		timeout := 10 * time.Second
		switch rng.IntN(10) {
		case 0, 1, 2, 3:
			req.Command = cniapi.Del
		case 4:
			req.Netns = "/run/netns/elsewhere"
		case 5:
			timeout = time.Duration(rng.IntN(300)) * time.Microsecond // the caller times out
		case 6:
			req = &cniapi.Request{Version: 1, Command: cniapi.GC, Network: cniapi.Network{Name: "contiv"}}
			for i := range containers / 2 {
				req.ValidAttachments = append(req.ValidAttachments, cniapi.AttachmentRef{ContainerID: fmt.Sprintf("c%d", i), IfName: "eth0"})
			}
		}
		r.ns.make(req.Netns)
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := r.pm.Handle(ctx, Checks{}, req)
			var e *cniapi.Error
			if err != nil && (!errors.As(err, &e) || e.Code != cniapi.CodeTryAgain && !strings.Contains(e.Msg, "injected")) {
				t.Errorf("%s: %v", req, err)
			}
		})
	}
	wg.Wait()
	for i := range containers { // a DEL waits for requests that are still queued
		if i%2 == 0 {
			r.del(fmt.Sprintf("c%d", i), "x")
		}
	}
	r.net.setFail(nil)
	r.consistentSoon()
	r.restart()
	r.consistent()
	for i := range containers {
		r.del(fmt.Sprintf("c%d", i), "x")
	}
	r.consistent()
	if len(r.pm.locks) != 0 || len(r.pm.LocalAttachments()) != 0 || r.net.count() != 0 {
		t.Errorf("left: %d locks, %d attachments, %d wired", len(r.pm.locks), len(r.pm.LocalAttachments()), r.net.count())
	}
}

// consistentSoon waits for events of callers that timed out.
func (r *rig) consistentSoon() {
	r.t.Helper()
	for {
		r.pm.mu.Lock()
		busy := len(r.pm.locks)
		r.pm.mu.Unlock()
		if busy == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	r.consistent()
}

// TestAddIntoInvalidSandbox checks that a namespace in which a pod cannot run is rejected at once, with CNI's code for it, and that nothing
// is stored.
func TestAddIntoInvalidSandbox(t *testing.T) {
	r := newRig(t)
	r.ns.set("/proc/1/ns/net", ownNetns)
	for _, path := range []string{"/run/netns/absent", "/proc/1/ns/net"} {
		req := addReq("c1", "web")
		req.Netns = path
		_, err := r.pm.Handle(t.Context(), r.check, req)
		var e *cniapi.Error
		if !errors.As(err, &e) || e.Code != cniapi.CodeInvalidNetns || !strings.Contains(e.Msg, path) {
			t.Errorf("%s: %v, want code %d", path, err, cniapi.CodeInvalidNetns)
		}
	}
	if all := r.pm.LocalAttachments(); len(all) != 0 {
		t.Errorf("attachments %v", all)
	}
}

// TestSlowAddSaysWhy checks that the error of an ADD that times out contains the reason why the node is not ready, as in STATUS.
func TestSlowAddSaysWhy(t *testing.T) {
	r := newRig(t)
	r.add("c0", "first") // after the start-up resync
	r.loop.close()
	gate := make(chan struct{})
	r.start(gate)
	r.pm.resynced = true
	r.check.Health = []HealthCheck{{Name: "dataplane", Check: func(context.Context) error { return errors.New("VPP is disconnected") }}}
	_, err := r.doFor(addReq("c1", "web"), 30*time.Millisecond)
	wantCode(t, err, cniapi.CodeTryAgain, "dataplane: VPP is disconnected")
	r.pm.resynced = false // as before the start-up resync
	r.check.Health = []HealthCheck{{Name: "agent", Check: func(context.Context) error { return errors.New("etcd does not respond") }}}
	_, err = r.doFor(addReq("c2", "web"), 30*time.Millisecond)
	wantCode(t, err, cniapi.CodeTryAgain, "is starting and has not configured this node yet; agent: etcd does not respond")
	close(gate)
}

// TestOneLineForEachPod checks that a successful ADD or DEL logs one line, and that a failed one logs one WARN with the cause first.
func TestOneLineForEachPod(t *testing.T) {
	r := newRig(t)
	var b bytes.Buffer
	r.pm.Log = logs.New(&b, slog.LevelInfo, nil)
	line := func(want string) {
		t.Helper()
		if text := b.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, want) {
			t.Errorf("the log has %q, want one line with %q", text, want)
		}
		b.Reset()
	}
	r.add("c1", "web")
	line(`level=INFO msg="pod added" pod=default/web addresses=10.1.0.2 took=`)
	r.del("c1", "web")
	line(`level=INFO msg="pod removed" pod=default/web`)
	r.net.setFail(func(api.Event) error { return errors.New("no free address") })
	if _, err := r.do(addReq("c2", "web")); err == nil {
		t.Fatal("it did not fail")
	}
	line(`level=WARN msg="CNI request failed" error="no free address" command=add pod=default/web took=`)
}
