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

// Variant selects one of the kernel's two implementations of iptables.
type Variant string

// The variants.
const (
	VariantAuto   Variant = "auto" // the one with more rules; if equal, the one of the program iptables
	VariantNFT    Variant = "nft"
	VariantLegacy Variant = "legacy"
)

// InsertMode determines the position of our rules in the kernel's chains.
type InsertMode string

// The modes.
const (
	Insert InsertMode = "insert" // above all others; each check detects rules of other programs above ours and moves ours up
	Append InsertMode = "append" // below the existing rules
)

// Config configures the backend. The zero value is usable except for ScratchMarks, which rules with lists need.
type Config struct {
	NS      *nsdo.Namespace
	Log     *slog.Logger          // nil: none
	Metrics prometheus.Registerer // nil: none
	Clock   Clock                 // nil: real time
	// MetricPrefix is the prefix of the metrics' names; "": they have Felix's names.
	MetricPrefix string

	Variant    Variant    // "": auto
	InsertMode InsertMode // "": insert

	// ScratchMarks are two mark bits that rules with lists (more than one prefix, …) use to pass results from one rule to the next. After
	// such a rule their value is undefined.
	ScratchMarks [2]uint32
	// ChainPrefixes are the prefixes of our chains' names. Chains with such a name that are not desired are removed, with the rules of the
	// kernel's chains that jump to them. nil: "cali-".
	ChainPrefixes []string

	// RefreshInterval is the interval at which the kernel's rules are compared with the desired ones. 0: 90 s, negative: never.
	RefreshInterval time.Duration
	// PostWriteCheckInterval is the time from a write to the first check of its result; the time doubles with each further check, up to an
	// hour. 0: 1 s, negative: no checks. At least 50 ms.
	PostWriteCheckInterval time.Duration

	// LockFilePath is the file of the lock that programs of the legacy variant share. "": /run/xtables.lock.
	LockFilePath string
	// LockTimeout is how long to wait for the lock. 0 or less: 10 s; but with an iptables older than 1.6.2, which does not take the lock
	// itself, 0 or less means that the lock is not taken.
	LockTimeout time.Duration
	// LockProbeInterval is the interval between attempts to take the lock. 0: 50 ms.
	LockProbeInterval time.Duration
}

// Clock provides the time, and pauses between attempts.
type Clock interface {
	Now() time.Time
	// Sleep pauses for d, or returns the context's error if the context ends first.
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

// orElse sets *v to other if it is zero.
func orElse[T comparable](v *T, other T) {
	var zero T
	if *v == zero {
		*v = other
	}
}

var _ table.Backend = (*Backend)(nil)
