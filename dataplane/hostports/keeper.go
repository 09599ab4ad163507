package hostports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// tableName is the name of the table, which nobody else uses.
const tableName = "contiv-nodeports"

const (
	firstRetry  = time.Second
	longestWait = time.Minute
)

// Port is a node port.
type Port struct {
	Proto string // tcp or udp
	Port  uint16
}

// Ports is what is wanted.
type Ports struct {
	Ports []Port
	At    []netip.Addr // addresses of the host
	To    netip.Addr   // VPP's address on the link
	Link  string       // the host's end of the link
}

// Keeper keeps the table. Set may be called from any goroutine.
type Keeper struct {
	log  *slog.Logger
	nft  func(ctx context.Context, script string, args ...string) error
	wake chan struct{}

	mu     sync.Mutex
	wanted *Ports // nil: nothing is known yet
}

// New is a Keeper that does nothing before Run.
func New(log *slog.Logger) *Keeper {
	return &Keeper{log: log.With("component", "hostports"), nft: runNFT, wake: make(chan struct{}, 1)}
}

// Set says what is wanted from now on.
func (k *Keeper) Set(p Ports) {
	p.Ports = slices.Clone(p.Ports)
	slices.SortFunc(p.Ports, func(a, b Port) int {
		if a.Port != b.Port {
			return int(a.Port) - int(b.Port)
		}
		return strings.Compare(a.Proto, b.Proto)
	})
	k.mu.Lock()
	k.wanted = &p
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run brings the table up to date until ctx ends. The table stays, as all of the dataplane does.
func (k *Keeper) Run(ctx context.Context) error {
	wait := firstRetry
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.wake:
		case <-again:
		}
		again = nil
		if err := k.apply(ctx); err != nil {
			k.log.Warn("node ports are not served at the host's own addresses; is the nft command there?",
				"error", err, "again in", wait)
			again, wait = time.After(wait), min(2*wait, longestWait)
			continue
		}
		wait = firstRetry
	}
}

func (k *Keeper) apply(ctx context.Context) error {
	k.mu.Lock()
	wanted := k.wanted
	k.mu.Unlock()
	if wanted == nil {
		return nil
	}
	script, mark := wanted.script()
	if k.nft(ctx, "", "list", "chain", "ip", tableName, mark) == nil {
		return nil // as a former agent has left it
	}
	return k.nft(ctx, script, "-f", "-")
}

// script replaces the table. A chain without rules has the script's hash as its name, so that one that is there already is
// known.
func (p *Ports) script() (script, mark string) {
	var ports, addrs []string
	for _, port := range p.Ports {
		ports = append(ports, fmt.Sprintf("%s . %d", port.Proto, port.Port))
	}
	for _, addr := range p.At {
		addrs = append(addrs, addr.String())
	}
	var b strings.Builder
	set := func(name, kind string, elements []string) {
		fmt.Fprintf(&b, "\tset %s {\n\t\ttype %s\n", name, kind)
		if len(elements) > 0 {
			fmt.Fprintf(&b, "\t\telements = { %s }\n", strings.Join(elements, ", "))
		}
		b.WriteString("\t}\n")
	}
	chain := func(name, hook string, priority int, rule string) {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype nat hook %s priority %d\n\t\t%s\n\t}\n", name, hook, priority, rule)
	}
	if p.To.IsValid() {
		set("ports", "inet_proto . inet_service", ports)
		set("addresses", "ipv4_addr", addrs)
		match := fmt.Sprintf("fib daddr type local ip daddr @addresses meta l4proto . th dport @ports dnat to %s", p.To)
		chain("in", "prerouting", -100, fmt.Sprintf("iifname != %q %s", p.Link, match))
		chain("own", "output", -100, match)
		chain("out", "postrouting", 100, fmt.Sprintf("oifname %q ip daddr %s ct status dnat masquerade", p.Link, p.To))
	}
	sum := sha256.Sum256([]byte(b.String()))
	mark = "v" + hex.EncodeToString(sum[:12])
	return fmt.Sprintf("table ip %[1]s {}\ndelete table ip %[1]s\ntable ip %[1]s {\n%[2]s\tchain %[3]s {}\n}\n",
		tableName, b.String(), mark), mark
}

func runNFT(ctx context.Context, script string, args ...string) error {
	cmd := exec.CommandContext(ctx, "nft", args...)
	cmd.Stdin = strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("nft %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
