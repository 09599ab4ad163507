package iptables

import (
	"context"
	"fmt"
	"log/slog"
	"math/bits"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Variant reports which of the kernel's two implementations iptables programs.
type Variant string

// The variants.
const (
	VariantAuto   Variant = "auto" // the one that has more rules, or else the one that the program iptables stands for
	VariantNFT    Variant = "nft"
	VariantLegacy Variant = "legacy"
)

// InsertMode reports where in the kernel's chains our rules go.
type InsertMode string

// The modes.
const (
	Insert InsertMode = "insert" // above all others; a foreign rule above ours is noticed at each check, and ours moved up
	Append InsertMode = "append" // below those that are there
)

// Config reports how the backend works. The zero value is usable except for ScratchMarks, which rules with lists need.
type Config struct {
	NS      *nsdo.Namespace
	Log     *slog.Logger          // nil: none
	Metrics prometheus.Registerer // nil: none
	Clock   Clock                 // nil: the real one
	// MetricPrefix begins the metrics' names; "": they have Felix's names.
	MetricPrefix string

	Variant    Variant    // "": auto
	InsertMode InsertMode // "": insert

	// ScratchMarks are two mark bits that rules with lists (more than one net, …) use between one rule and the next. After
	// such a rule their value is undefined.
	ScratchMarks [2]uint32
	// ChainPrefixes begin the names of all chains that are ours: such chains that nothing desires are removed, with the rules of the
	// kernel's chains that jump to them. nil: "cali-".
	ChainPrefixes []string

	// RefreshInterval is how often the kernel's rules are compared with what is desired. 0: 90 s, negative: never.
	RefreshInterval time.Duration
	// PostWriteCheckInterval is the time between a write and the first look at what has become of it; each further look comes
	// after twice the time, up to an hour. 0: 1 s, negative: none. At least 50 ms.
	PostWriteCheckInterval time.Duration

	// LockFilePath is the lock that users of the legacy variant share. "": /run/xtables.lock.
	LockFilePath string
	// LockTimeout is how long to wait for it. Up to 0: 10 s; but with an iptables older than 1.6.2, which does not take the
	// lock itself, 0 stands for not to lock.
	LockTimeout time.Duration
	// LockProbeInterval is how often to try. 0: 50 ms.
	LockProbeInterval time.Duration
}

// Clock is the time, and pauses between attempts.
type Clock interface {
	Now() time.Time
	// Sleep pauses, or returns the context's error when that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	defaultLockFile     = "/run/xtables.lock"
	defaultLockTimeout  = 10 * time.Second
	defaultLockProbe    = 50 * time.Millisecond
	defaultRefresh      = 90 * time.Second
	defaultPostWrite    = time.Second
	minPostWrite        = 50 * time.Millisecond
	maxPostWrite        = time.Hour
	defaultChainsPrefix = "cali-"
)

// complete checks the configuration and fills in defaults.
func (c Config) complete() (Config, error) {
	orElse(&c.Variant, VariantAuto)
	orElse(&c.InsertMode, Insert)
	orElse(&c.RefreshInterval, defaultRefresh)
	orElse(&c.PostWriteCheckInterval, defaultPostWrite)
	orElse(&c.LockFilePath, defaultLockFile)
	orElse(&c.LockProbeInterval, defaultLockProbe)
	if c.PostWriteCheckInterval > 0 {
		c.PostWriteCheckInterval = max(c.PostWriteCheckInterval, minPostWrite)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = realClock{}
	}
	if c.ChainPrefixes == nil {
		c.ChainPrefixes = []string{defaultChainsPrefix}
	}
	for _, p := range c.ChainPrefixes {
		if err := word("chain prefix", p, 10); err != nil {
			return c, fmt.Errorf("iptables configuration: %w", err)
		}
	}
	switch c.InsertMode {
	case Insert, Append:
	default:
		return c, fmt.Errorf("iptables configuration: insert mode %q is not insert or append", c.InsertMode)
	}
	switch c.Variant {
	case VariantAuto, VariantNFT, VariantLegacy:
	default:
		return c, fmt.Errorf("iptables configuration: variant %q is not auto, nft or legacy", c.Variant)
	}
	a, b := c.ScratchMarks[0], c.ScratchMarks[1]
	if a|b != 0 && (bits.OnesCount32(a) != 1 || bits.OnesCount32(b) != 1 || a == b) {
		return c, fmt.Errorf("iptables configuration: scratch marks %#x and %#x are not two different bits", a, b)
	}
	return c, nil
}

// orElse replaces a zero value.
func orElse[T comparable](v *T, other T) {
	var zero T
	if *v == zero {
		*v = other
	}
}

var _ table.Backend = (*Backend)(nil)
