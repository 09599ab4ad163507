package hostports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	firstRetry  = time.Second
	longestWait = time.Minute
	// checkEvery is how often the tables are looked at: somebody may have deleted or changed one.
	checkEvery = 30 * time.Second
)

// Keeper keeps the tables. Set, SetPlaces and SetAliases may be called from any goroutine.
type Keeper struct {
	log  *slog.Logger
	nft  func(ctx context.Context, script string, args ...string) (string, error)
	lead func(a answers) error
	wake chan struct{}

	mu     sync.Mutex
	wanted [6]content // guarded by mu; nil: nothing is known yet

	held [6]held // Run only
}

// content is what is wanted of a table.
type content interface {
	table() string
	// script writes the table, mark is the name of a chain that only this content has. Empty: there must be no such table.
	script(ipv6 bool) (script, mark string)
}

// held is what is known of a table that is there.
type held struct {
	seen string  // what nft lists when all is well
	none content // what wants no table, which has been seen to
}

// New is a Keeper that does nothing before Run.
func New(log *slog.Logger) *Keeper {
	return &Keeper{log: log.With("component", "hostports"), nft: runNFT, lead: here, wake: make(chan struct{}, 1)}
}

// Set says what node ports and addresses of its own the host sees to from now on, for a family.
func (k *Keeper) Set(ipv6 bool, p Ports) {
	p.Ports = slices.Clone(p.Ports)
	slices.SortFunc(p.Ports, func(a, b Port) int {
		if a.Port != b.Port {
			return int(a.Port) - int(b.Port)
		}
		return strings.Compare(a.Proto, b.Proto)
	})
	k.want(index(ipv6), &p)
}

// SetPlaces says what places the host serves from now on, for a family.
func (k *Keeper) SetPlaces(ipv6 bool, p Places) {
	p.Places = slices.Clone(p.Places)
	k.want(2+index(ipv6), &p)
}

func (k *Keeper) want(i int, c content) {
	k.mu.Lock()
	k.wanted[i] = c
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func index(ipv6 bool) int {
	if ipv6 {
		return 1
	}
	return 0
}

// Run brings the tables up to date until ctx ends, and repairs them. They stay, as all of the dataplane does.
func (k *Keeper) Run(ctx context.Context) error {
	wait := firstRetry
	next := time.NewTimer(checkEvery)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.wake:
		case <-next.C:
		}
		var errs []error
		for i := range k.wanted {
			errs = append(errs, k.apply(ctx, i))
		}
		if err := errors.Join(errs...); err != nil {
			k.log.Warn("the host is not programmed for services (node ports at its own addresses, addresses with source "+
				"ranges); is the nft command there?", "error", err, "again in", wait)
			next.Reset(wait)
			wait = min(2*wait, longestWait)
			continue
		}
		wait = firstRetry
		next.Reset(checkEvery)
	}
}

// apply brings a table up to date, and with that of places the way of their answers.
func (k *Keeper) apply(ctx context.Context, i int) error {
	k.mu.Lock()
	wanted := k.wanted[i]
	k.mu.Unlock()
	if wanted == nil {
		return nil
	}
	h, ipv6 := &k.held[i], i%2 == 1
	if h.none == wanted {
		return nil
	}
	h.none = nil
	script, mark := wanted.script(ipv6)
	var err error
	if script == "" {
		err = k.remove(ctx, ipv6, wanted)
	} else {
		err = k.write(ctx, h, ipv6, wanted, script, mark)
	}
	if p, ok := wanted.(*Places); ok {
		err = errors.Join(err, k.lead(p.answers(ipv6)))
	}
	if err == nil && script == "" {
		*h = held{none: wanted}
	}
	return err
}

// write writes a table unless it is there, as this agent or a former one has left it.
func (k *Keeper) write(ctx context.Context, h *held, ipv6 bool, wanted content, script, mark string) error {
	if has, err := k.list(ctx, ipv6, wanted.table()); err == nil && strings.Contains(has, "chain "+mark+" ") {
		if h.seen == "" || h.seen == has {
			h.seen = has
			return nil
		}
		k.log.Warn("another program changed a table of ours; it is written again", "table", wanted.table())
	}
	if _, err := k.nft(ctx, script, "-f", "-"); err != nil {
		if _, guards := wanted.(*Places); guards {
			err = errors.Join(err, k.drop(ctx, ipv6, wanted.table()))
		}
		return err
	}
	has, err := k.list(ctx, ipv6, wanted.table())
	h.seen = has
	return err
}

// remove removes a table.
func (k *Keeper) remove(ctx context.Context, ipv6 bool, wanted content) error {
	_, err := k.list(ctx, ipv6, wanted.table())
	if err == nil {
		return k.drop(ctx, ipv6, wanted.table())
	}
	if strings.Contains(err.Error(), "No such file or directory") {
		return nil
	}
	return err
}

// drop removes a table, if there is one. A table of places that cannot be brought up to date must not go on letting in those
// who may not any longer.
func (k *Keeper) drop(ctx context.Context, ipv6 bool, table string) error {
	_, err := k.nft(ctx, fmt.Sprintf("table %[1]s %[2]s {}\ndelete table %[1]s %[2]s\n", familyName(ipv6), table), "-f", "-")
	return err
}

func (k *Keeper) list(ctx context.Context, ipv6 bool, table string) (string, error) {
	return k.nft(ctx, "", "-s", "list", "table", familyName(ipv6), table)
}

func runNFT(ctx context.Context, script string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "nft", args...)
	cmd.Stdin = strings.NewReader(script)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("nft %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
