package vpp

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/forge"
	"contiv.dev/vswitch/test/testbed/netns"
)

// TestReceiveWithoutPlugin checks that, on a VPP without our plugin, packets of a pod that sends while its TAP is made are received when the
// interface is up, in nearly all attempts: VPP gets no interrupt for a ring that is full when the mode is set, and the pod fills the ring before
// that in some 2 of 100 attempts. CONTIV_ATTEMPTS is the number of attempts.
func TestReceiveWithoutPlugin(t *testing.T) {
	attempts := 16
	if n, err := strconv.Atoi(os.Getenv("CONTIV_ATTEMPTS")); err == nil {
		attempts = n
	}
	v := vpptest.Start(t, vpptest.Options{Vhostshim: true})
	g := &target{socket: v.Socket(), cli: v.CLI, real: v}
	a := newAgent(t, g, Deps{})
	lost := 0
	for i := range attempts {
		if !a.receivedFrom(g, i) {
			lost++
		}
	}
	t.Logf("VPP receives nothing from %d of %d pods", lost, attempts)
	if lost > attempts/5 {
		t.Errorf("VPP receives nothing from %d of %d pods, want %d at most", lost, attempts, attempts/5)
	}
}

// receivedFrom makes a pod that sends as soon as its interface exists, and reports whether VPP receives the packets.
func (a *agent) receivedFrom(g *target, i int) bool {
	t := a.t
	t.Helper()
	ns, err := netns.New(t.Context(), fmt.Sprintf("cvrx%d-%d", i, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Delete(context.Background())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		frame := make([]byte, 100)
		for ctx.Err() == nil {
			s, err := forge.Open(ns, "eth0", false, false)
			if err != nil {
				continue // does not exist yet
			}
			for ctx.Err() == nil {
				s.Send(frame, forge.Offload{})
			}
			s.Close()
		}
	}()
	pod := tap("pod", func(v *vpp_interfaces.Interface) {
		v.GetTap().ToMicroservice, v.GetTap().HostIfName = ns.Path(), "eth0"
	})
	a.resync(pod)
	received, tick := false, time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for begin, before := time.Now(), receivedFrames(t, g); !received && time.Since(begin) < 3*time.Second; {
		<-tick.C
		now := receivedFrames(t, g)
		received, before = now > before, now
	}
	stop()
	<-over
	a.resync()
	return received
}

var rxPackets = regexp.MustCompile(`rx packets +(\d+)`)

func receivedFrames(t *testing.T, g *target) int {
	t.Helper()
	text, err := g.cli("show interface")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if m := rxPackets.FindStringSubmatch(text); m != nil {
		n, _ = strconv.Atoi(strings.TrimSpace(m[1]))
	}
	return n
}
