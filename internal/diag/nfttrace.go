package diag

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// traceText is the maximum length of the recording.
	traceText = 1 << 20
	// settle is the time without new output after which the recording counts as complete: there is no last event.
	settle = 150 * time.Millisecond
	// listenTimeout is the time within which the tool has to start listening, and to print what it has received.
	listenTimeout = 5 * time.Second
	listenPoll    = 5 * time.Millisecond
)

// nftTrace is a recording by the kernel's packet tracing. A nil monitor means that there is no nft tool: then only facts are
// reported.
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
	// The monitor has to stop before the request ends, even if ctx ends first: finish kills it.
	t.monitor = exec.CommandContext(context.WithoutCancel(ctx), nft, "monitor", "trace")
	t.monitor.Stdout = t.out
	endWithAgent(t.monitor)
	runtime.LockOSThread() // until finish: the kernel kills the monitor when the thread that started it ends
	if err := t.monitor.Start(); err != nil {
		runtime.UnlockOSThread()
		return nil, errors.Join(fmt.Errorf("nft monitor trace: %w", err),
			runNft(context.WithoutCancel(ctx), nft, "delete table inet "+traceTable))
	}
	if err := t.awaitListening(ctx); err != nil {
		_, errFinish := t.finish(context.WithoutCancel(ctx))
		return nil, errors.Join(err, errFinish)
	}
	return t, nil
}

// awaitListening waits until the tool listens to traced packets.
func (t *nftTrace) awaitListening(ctx context.Context) error {
	for deadline := time.Now().Add(listenTimeout); ; {
		listens, _, err := listener(t.monitor.Process.Pid)
		switch {
		case err != nil:
			return fmt.Errorf("nft monitor trace: %w", err)
		case listens:
			return nil
		case time.Now().After(deadline) || !pause(ctx, listenPoll):
			return errors.New("nft monitor trace did not start to listen")
		}
	}
}

// awaitQuiet waits until the tool has read and printed all events.
func (t *nftTrace) awaitQuiet(ctx context.Context) {
	last, since := t.out.written.Load(), time.Now()
	for deadline := time.Now().Add(listenTimeout); time.Now().Before(deadline) && pause(ctx, listenPoll); {
		_, unread, err := listener(t.monitor.Process.Pid)
		now := t.out.written.Load()
		if err == nil && (unread > 0 || now != last) {
			last, since = now, time.Now()
		}
		if time.Since(since) > settle {
			return
		}
	}
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
		// First no more packets are marked: on a busy path the tool would never have printed all events.
		err = runNft(ctx, t.monitor.Path, "flush chain inet "+traceTable+" prerouting\nflush chain inet "+traceTable+" output")
		t.awaitQuiet(ctx)
		err = errors.Join(err, runNft(ctx, t.monitor.Path, "delete table inet "+traceTable))
		_ = t.monitor.Process.Kill()
		_ = t.monitor.Wait() // returns an error because the process was killed
		runtime.UnlockOSThread()
		c.Text = t.out.String()
		if t.out.cut {
			c.Notes = append(c.Notes, "the recording is incomplete, because it is too long: trace a flow with fewer packets")
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
	c.Facts = append(podFacts(t.s, t.req), nodeFacts(t.s, t.req)...)
	return c, err
}

// limited keeps the beginning of the data that is written to it.
type limited struct {
	bytes.Buffer
	max     int
	cut     bool
	written atomic.Int64 // number of bytes so far, kept or not
}

// Write implements io.Writer.
func (l *limited) Write(b []byte) (int, error) {
	l.written.Add(int64(len(b)))
	if room := l.max - l.Len(); room < len(b) {
		l.cut = true
		l.Buffer.Write(b[:max(room, 0)])
		return len(b), nil
	}
	return l.Buffer.Write(b)
}
