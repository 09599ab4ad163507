package diag

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"contiv.dev/vswitch/internal/nsdo"
)

const (
	// traceTable is there while packets are recorded, and nothing else is in it.
	traceTable = "contiv-trace"
	// traceText is how much of the recording is kept.
	traceText = 1 << 20
	// settle is what the kernel needs to bring the last events to the listener, which cannot be waited for in another way.
	settle = 150 * time.Millisecond
)

// nftTrace is the kernel's packet tracing at work. A nil monitor says that there is no nft tool: then only facts are told.
type nftTrace struct {
	s       *Service
	req     TraceRequest
	monitor *exec.Cmd
	out     *limited
	drops   map[string]uint64
	notes   []string
}

func startNftTrace(ctx context.Context, s *Service, req TraceRequest) (recording, error) {
	t := &nftTrace{s: s, req: req, out: &limited{max: traceText}, drops: deviceDrops()}
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.notes = append(t.notes, "there is no nft tool beside the agent: rules are not followed, only routes and neighbours "+
			"are looked up")
		return t, nil
	}
	if err := runNft(ctx, nft, tracingRules(req)); err != nil {
		return nil, fmt.Errorf("mark packets for tracing: %w", err)
	}
	// The monitor has to be gone before the request ends, whatever becomes of ctx: finish kills it.
	t.monitor = exec.CommandContext(context.WithoutCancel(ctx), nft, "monitor", "trace")
	t.monitor.Stdout = t.out
	if err := t.monitor.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("nft monitor trace: %w", err), runNft(ctx, nft, "delete table inet "+traceTable))
	}
	pause(ctx, settle) // until the tool listens, of which it does not tell
	return t, nil
}

// tracingRules mark the packets of a flow, both ways, before any other rule sees them.
func tracingRules(req TraceRequest) string {
	family := "ip"
	if req.Dest.Is6() {
		family = "ip6"
	}
	there, back := "", ""
	switch {
	case req.Port != 0:
		there, back = fmt.Sprintf("%s dport %d", req.Proto, req.Port), "meta l4proto "+req.Proto
	case req.Dest.Is6():
		there, back = "meta l4proto ipv6-icmp", "meta l4proto ipv6-icmp"
	default:
		there, back = "meta l4proto icmp", "meta l4proto icmp"
	}
	rules := fmt.Sprintf("%[1]s saddr %[2]s %[1]s daddr %[3]s %[4]s meta nftrace set 1\n"+
		"%[1]s saddr %[3]s %[5]s meta nftrace set 1\n", family, req.Source, req.Dest, there, back)
	text := "add table inet " + traceTable + "\ndelete table inet " + traceTable + "\ntable inet " + traceTable + " {\n"
	for _, hook := range []string{"prerouting", "output"} {
		text += "chain " + hook + " {\ntype filter hook " + hook + " priority -450\n" + rules + "}\n"
	}
	return text + "}\n"
}

func runNft(ctx context.Context, nft, script string) error {
	cmd := exec.CommandContext(ctx, nft, "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// finish implements recording.
func (t *nftTrace) finish(ctx context.Context) (*Capture, error) {
	c := &Capture{Dataplane: "linux", Errors: []ErrorCount{}, Interfaces: []Interface{}, Notes: t.notes}
	var err error
	if t.monitor != nil {
		pause(ctx, settle)
		err = runNft(ctx, t.monitor.Path, "delete table inet "+traceTable)
		_ = t.monitor.Process.Kill()
		_ = t.monitor.Wait() // says that it was killed
		c.Text = t.out.String()
		if t.out.cut {
			c.Notes = append(c.Notes, "more was recorded than is kept: choose a quieter flow")
		}
	}
	for _, p := range t.s.Pods() {
		c.Interfaces = append(c.Interfaces, Interface{Name: p.Device, Pod: p.Namespace + "/" + p.Name})
	}
	for name, n := range deviceDrops() {
		if n > t.drops[name] {
			c.Errors = append(c.Errors, ErrorCount{Where: name, Reason: "dropped by the device", Count: n - t.drops[name]})
		}
	}
	c.Facts = t.facts()
	return c, err
}

// facts asks the kernel what it does with the packet: in the sending pod, and on this node.
func (t *nftTrace) facts() []Fact {
	var facts []Fact
	in := ""
	if pod, err := t.s.pod(t.req.Namespace, t.req.Pod); err == nil {
		in = pod.Device
		ns, err := nsdo.Open(pod.Netns)
		if err != nil {
			return []Fact{{Where: "pod", What: "namespace", Text: err.Error(), Problem: true}}
		}
		defer ns.Close()
		if err := ns.Do(func() error { facts = append(facts, way("pod", t.req.Dest, netip.Addr{}, "")...); return nil }); err != nil {
			facts = append(facts, Fact{Where: "pod", What: "namespace", Text: err.Error(), Problem: true})
		}
	}
	if in == "" { // the packet comes from another node
		return append(facts, way("node", t.req.Dest, netip.Addr{}, "")...)
	}
	return append(facts, way("node", t.req.Dest, t.req.Source, in)...)
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
	max int
	cut bool
}

// Write implements io.Writer.
func (l *limited) Write(b []byte) (int, error) {
	if room := l.max - l.Len(); room < len(b) {
		l.cut = true
		l.Buffer.Write(b[:max(room, 0)])
		return len(b), nil
	}
	return l.Buffer.Write(b)
}
