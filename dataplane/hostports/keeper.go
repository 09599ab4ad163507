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

// Keeper keeps the tables. Set may be called from any goroutine.
type Keeper struct {
	log  *slog.Logger
	nft  func(ctx context.Context, script string, args ...string) (string, error)
	wake chan struct{}

	mu     sync.Mutex
	wanted [2]*Ports // by family; nil: nothing is known yet

	seen [2]string // what nft lists when all is well, by family; Run only
}

// New is a Keeper that does nothing before Run.
func New(log *slog.Logger) *Keeper {
	return &Keeper{log: log.With("component", "hostports"), nft: runNFT, wake: make(chan struct{}, 1)}
}

// Set says what is wanted of a family from now on.
func (k *Keeper) Set(ipv6 bool, p Ports) {
	p.Ports = slices.Clone(p.Ports)
	slices.SortFunc(p.Ports, func(a, b Port) int {
		if a.Port != b.Port {
			return int(a.Port) - int(b.Port)
		}
		return strings.Compare(a.Proto, b.Proto)
	})
	k.mu.Lock()
	k.wanted[index(ipv6)] = &p
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
		if err := errors.Join(k.apply(ctx, false), k.apply(ctx, true)); err != nil {
			k.log.Warn("node ports are not served at the host's own addresses; is the nft command there?",
				"error", err, "again in", wait)
			next.Reset(wait)
			wait = min(2*wait, longestWait)
			continue
		}
		wait = firstRetry
		next.Reset(checkEvery)
	}
}

// apply writes the table of a family unless it is there, as this agent or a former one has left it.
func (k *Keeper) apply(ctx context.Context, ipv6 bool) error {
	i := index(ipv6)
	k.mu.Lock()
	wanted := k.wanted[i]
	k.mu.Unlock()
	if wanted == nil {
		return nil
	}
	script, mark := wanted.script(ipv6)
	if has, err := k.list(ctx, ipv6); err == nil && strings.Contains(has, "chain "+mark+" ") {
		if k.seen[i] == "" || k.seen[i] == has {
			k.seen[i] = has
			return nil
		}
		k.log.Warn("somebody changed the table of node ports; it is written anew", "table", tableName)
	}
	if _, err := k.nft(ctx, script, "-f", "-"); err != nil {
		return err
	}
	has, err := k.list(ctx, ipv6)
	k.seen[i] = has
	return err
}

func (k *Keeper) list(ctx context.Context, ipv6 bool) (string, error) {
	return k.nft(ctx, "", "-s", "list", "table", familyName(ipv6), tableName)
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
