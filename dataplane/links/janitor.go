package links

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

const (
	// janitorQuiet is the time without further deleted pairs after which the janitor runs.
	janitorQuiet = 500 * time.Millisecond
	// janitorLimit is the longest time that the janitor waits for that: on nodes where pods are created and deleted all the time, there is no
	// quiet period.
	janitorLimit = 3 * time.Second
)

// Janitor removes VETH pairs after their owner has gone. The kernel waits 20 ms for RCU to remove a link, and not longer for a hundred links in
// one message. So deleting a pod only marks its pair, by a link group, and a job removes all marked pairs. Marked pairs that an agent leaves
// behind are removed by the janitor of the next agent.
type Janitor struct {
	log  *slog.Logger
	wake chan struct{}
}

// NewJanitor returns a janitor; Run is its job.
func NewJanitor(log *slog.Logger) *Janitor {
	return &Janitor{log: log.With("component", "netlink"), wake: make(chan struct{}, 1)}
}

func (j *Janitor) call() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Run removes the marked links until ctx ends.
func (j *Janitor) Run(ctx context.Context) error {
	for {
		if err := j.sweep(); err != nil {
			j.log.Warn("VETH pairs of deleted pods are removed later", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-j.wake:
		}
		if err := j.quiet(ctx); err != nil {
			return err
		}
	}
}

// quiet waits until no more pairs are marked, or until janitorLimit.
func (j *Janitor) quiet(ctx context.Context) error {
	timer, limit := time.NewTimer(janitorQuiet), time.NewTimer(janitorLimit)
	defer timer.Stop()
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-j.wake:
			timer.Reset(janitorQuiet)
		case <-timer.C:
			return nil
		case <-limit.C:
			return nil
		}
	}
}

func (j *Janitor) sweep() error {
	s, err := newSock(nil, 5*time.Second, nil)
	if err != nil {
		return err
	}
	defer s.close()
	err = s.exec(delGroup(groupDoomed))
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) { // there are no such links
		return nil
	}
	return err
}

// deferDeletion marks pairs for removal by the janitor. Each end is renamed first, so that both names can be used again immediately; pairs for
// which this fails are removed by the delete that follows.
func (b *Backend) deferDeletion(host *nsHandle, doomed []*device) {
	group, none := uint32(groupDoomed), ""
	for _, d := range doomed {
		h, d, err := b.locate(d.logical)
		if err != nil || h != host {
			continue
		}
		peer := d.peer
		spec := linkSpec{index: d.index, nsFD: -1, name: fmt.Sprintf("cvx%x", d.index), group: &group, alias: &none}
		if err := rename(h, spec); err != nil {
			b.log.Debug("link is removed at once", "device", d.name, "error", err)
			continue
		}
		b.removeDevice(d.logical)
		// The other end is removed together with this one. If its namespace is not reachable, its name is not needed either.
		_ = b.onDevice(peer, func(h *nsHandle, p *device) error {
			return rename(h, linkSpec{index: p.index, nsFD: -1, name: spareName(peer), alias: &none})
		})
		b.removeDevice(peer)
	}
	b.janitor.call()
}

// rename changes a link, and renames it if spec has a name.
func rename(h *nsHandle, spec linkSpec) error { return renameLink(h.sock.exec, spec) }

// renameLink is rename with any way to carry out a request. Before Linux 6.2 a link must be down to be renamed, also if it is set down by the same
// request: the kernel renames it first.
func renameLink(exec func(*netlink.Batch) error, spec linkSpec) error {
	err := exec(setLink(spec))
	if !errors.Is(err, unix.EBUSY) || spec.name == "" {
		return err
	}
	if err := exec(setLink(linkSpec{index: spec.index, nsFD: -1, down: true})); err != nil {
		return fmt.Errorf("set it down to rename it: %w", err)
	}
	return exec(setLink(spec))
}
