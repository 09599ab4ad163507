package hostports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/dataplane/scheduler"
)

const (
	// nftTimeout bounds one run of nft.
	nftTimeout = 10 * time.Second
	// lookEvery is the period at which Watch reads the tables.
	lookEvery = 30 * time.Second
)

// Tables manages the nftables tables of both families.
type Tables struct {
	log      *slog.Logger
	nft      NFT
	iptables IPTables // nil: nft is used for everything

	mu   sync.Mutex
	seen map[table]string // what nft listed when the table was correct; guarded by mu
}

// table identifies one table.
type table struct {
	family linux_nodeports.Family
	name   string
}

func (t table) String() string { return familyName(t.family) + " " + t.name }

// NFT runs nft with a script as its input, and returns its output.
type NFT func(ctx context.Context, script string, args ...string) (string, error)

// New returns the Tables of the process's network namespace. iptables, which Choose returns for a host without nft, is then used for forwarded
// connections.
func New(nft NFT, iptables IPTables, log *slog.Logger) *Tables {
	return &Tables{log: log.With("component", "hostports"), nft: nft, iptables: iptables, seen: map[table]string{}}
}

// ByIPTables reports whether the host has no nft, so that iptables is used.
func (t *Tables) ByIPTables() bool { return t.iptables != nil }

// Register adds the descriptors.
func (t *Tables) Register(s *scheduler.Scheduler) error {
	return errors.Join(
		scheduler.Register(s, descriptorOf(t, content[*linux_nodeports.NodePorts]{
			kind: "linux-node-ports", prefix: nb.NodePortsPrefix, table: portsTable, validate: validatePorts, script: portsScript,
			empty: func(f linux_nodeports.Family) *linux_nodeports.NodePorts {
				return &linux_nodeports.NodePorts{Family: f}
			},
		})),
		scheduler.Register(s, descriptorOf(t, content[*linux_nodeports.Forwarded]{
			kind: "linux-forwarded", prefix: nb.ForwardedPrefix, table: forwardedTable, validate: validateForwarded, script: forwardedScript,
			empty: func(f linux_nodeports.Family) *linux_nodeports.Forwarded {
				return &linux_nodeports.Forwarded{Family: f}
			},
			other: t.otherForwarded,
		})),
	)
}

// value is a value that is rendered as a table: there is one for each family.
type value interface {
	proto.Message
	GetFamily() linux_nodeports.Family
}

// content defines how a descriptor renders its values.
type content[V value] struct {
	kind, prefix, table string
	validate            func(V) error
	script              func(V) (script, mark string)
	empty               func(linux_nodeports.Family) V
	other               func(V) func(context.Context) error // nil, or returns a function that writes a value without nft
}

// otherForwarded implements content.other.
func (t *Tables) otherForwarded(f *linux_nodeports.Forwarded) func(context.Context) error {
	if t.iptables == nil || f.Self == "" {
		return nil
	}
	return func(ctx context.Context) error { return t.writeRules(ctx, f) }
}

func descriptorOf[V value](t *Tables, c content[V]) scheduler.Descriptor[V] {
	write := func(op *scheduler.Op, v V) {
		script, _ := c.script(v)
		write := func(ctx context.Context) error {
			_, err := t.nft(ctx, script, "-f", "-")
			return err
		}
		if c.other != nil {
			if other := c.other(v); other != nil {
				write = other
			}
		}
		op.Done(t.write(table{v.GetFamily(), c.table}, write))
	}
	return scheduler.Descriptor[V]{
		Name: c.kind, Prefix: c.prefix, Rank: scheduler.RankPodRoute,
		Validate: func(_ string, v V) error { return c.validate(v) },
		Equal:    func(_ string, desired, applied V) bool { return proto.Equal(desired, applied) },
		Create:   func(op *scheduler.Op, _ string, v V) { write(op, v) },
		Update:   func(op *scheduler.Op, _ string, _, v V) { write(op, v) },
		Delete:   func(op *scheduler.Op, _ string, v V) { op.Done(t.remove(table{v.GetFamily(), c.table})) },
		Dump:     func(op *scheduler.DumpOp, emit func(string, V)) { op.Done(dump(t, c, op, emit)) },
		// nft may be busy, or be installed later.
		Retriable: func(error) bool { return true },
	}
}

func (t *Tables) write(at table, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), nftTimeout)
	defer cancel()
	if err := write(ctx); err != nil {
		return fmt.Errorf("write the host's table %s: %w; install nft, or iptables for network policy alone", at, err)
	}
	has, err := t.list(ctx, at)
	if err != nil {
		return fmt.Errorf("list the host's table %s: %w", at, err)
	}
	t.note(at, has)
	return nil
}

func (t *Tables) remove(at table) error {
	ctx, cancel := context.WithTimeout(context.Background(), nftTimeout)
	defer cancel()
	t.note(at, "")
	if t.iptables != nil && at.name == forwardedTable {
		return removeRules(ctx, t.iptables, at.family)
	}
	if err := drop(ctx, t.nft, familyName(at.family), at.name); err != nil {
		return fmt.Errorf("remove the host's table %s: %w", at, err)
	}
	return nil
}

// dump emits the tables that exist: as the desired value if the table has its mark, otherwise as an empty value.
func dump[V value](t *Tables, c content[V], op *scheduler.DumpOp, emit func(string, V)) error {
	desired := map[linux_nodeports.Family]V{}
	op.EachDesired(func(_ string, v any) {
		one := v.(V)
		desired[one.GetFamily()] = one
	})
	for _, f := range families() {
		v, wanted := desired[f]
		if !wanted && op.Partial() {
			continue
		}
		at := table{f, c.table}
		has, err := t.list(op.Context(), at)
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list the host's table %s: %w", at, err)
		}
		if wanted {
			_, mark := c.script(v)
			wanted = t.holds(at, mark, has)
		}
		if !wanted {
			v = c.empty(f)
		}
		emit(c.prefix+f.String(), v)
	}
	return nil
}

// holds reports whether a table contains mark and is unchanged. A table that a previous agent wrote is recognized by its mark alone.
func (t *Tables) holds(at table, mark, has string) bool {
	if !strings.Contains(has, mark) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[at] == "" {
		t.seen[at] = has
	}
	return t.seen[at] == has
}

func (t *Tables) note(at table, has string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[at] = has
}

func (t *Tables) list(ctx context.Context, at table) (string, error) {
	if t.iptables != nil && at.name == forwardedTable {
		has, err := t.listRules(ctx, at.family)
		if err == nil && has == "" {
			err = errAbsent
		}
		return has, err
	}
	return t.nft(ctx, "", "-s", "list", "table", familyName(at.family), at.name)
}

// Watch calls repair when another program has deleted or changed a table, until ctx ends.
func (t *Tables) Watch(ctx context.Context, repair func(why string)) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for _, f := range families() {
			for _, at := range []table{{f, portsTable}, {f, forwardedTable}} {
				if t.changed(ctx, at) {
					why := fmt.Sprintf("another program changed the host's table %s", at)
					t.log.Warn(why + "; it is written again")
					repair(why)
				}
			}
		}
	}
}

func (t *Tables) changed(ctx context.Context, at table) bool {
	t.mu.Lock()
	before := t.seen[at]
	t.mu.Unlock()
	if before == "" {
		return false
	}
	has, err := t.list(ctx, at)
	if err != nil && !isAbsent(err) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[at] == before && has != before
}

func families() []linux_nodeports.Family {
	return []linux_nodeports.Family{linux_nodeports.Family_IPV4, linux_nodeports.Family_IPV6}
}
