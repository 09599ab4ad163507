package castest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

// ErrDown is the error of a Memory that SetDown has stopped.
var ErrDown = errors.New("the database is down")

// Memory is a cas.Store in memory, for any number of clients. It behaves as etcd does: one revision for the whole
// database, one transaction at a time, values with a time to live.
type Memory struct {
	mu       sync.Mutex
	values   map[string]stored
	rev      int64
	commits  int
	down     bool
	lose     int
	beforeDo func(changes []cas.Change)
}

type stored struct {
	value   []byte
	rev     int64
	expires time.Time // zero: never
}

var _ cas.Store = (*Memory)(nil)

// NewMemory returns an empty database.
func NewMemory() *Memory { return &Memory{values: map[string]stored{}} }

// SetDown makes all calls fail, or work again.
func (m *Memory) SetDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// LoseAnswers makes the next n commits fail although they are carried out.
func (m *Memory) LoseAnswers(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lose = n
}

// BeforeCommit registers f, which runs before each commit, without the lock; nil removes it.
func (m *Memory) BeforeCommit(f func(changes []cas.Change)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beforeDo = f
}

// Commits returns the number of commits that wrote something.
func (m *Memory) Commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits
}

// Wipe removes everything, like the loss of the disk; the revision starts again.
func (m *Memory) Wipe() { m.Restore(Backup{values: map[string]stored{}}) }

// Backup is a copy of a Memory.
type Backup struct {
	values map[string]stored
	rev    int64
}

// Backup copies the database.
func (m *Memory) Backup() Backup {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := Backup{values: map[string]stored{}, rev: m.rev}
	for k, v := range m.values {
		b.values[k] = v
	}
	return b
}

// Restore replaces everything with a backup.
func (m *Memory) Restore(b Backup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values, m.rev = map[string]stored{}, b.rev
	for k, v := range b.values {
		m.values[k] = v
	}
}

// Put writes a value without conditions.
func (m *Memory) Put(key string, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rev++
	m.values[key] = stored{value: bytes.Clone(value), rev: m.rev}
}

// Delete deletes a key without conditions.
func (m *Memory) Delete(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rev++
	delete(m.values, key)
}

// CommitFirst implements cas.Store.
func (m *Memory) CommitFirst(ctx context.Context, changes ...cas.Change) (index int, rev int64, err error) {
	m.mu.Lock()
	before := m.beforeDo
	m.mu.Unlock()
	if before != nil {
		before(changes)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return cas.None, 0, err
	}
	ops := 0
	index = cas.None
	for i, c := range changes {
		ops += max(len(c.If), len(c.Do), 1)
		if index == cas.None && m.holds(c) {
			index = i
		}
	}
	if ops > cas.MaxOps {
		return cas.None, 0, errors.New("too many operations in a commit")
	}
	if index != cas.None {
		m.do(changes[index])
	}
	if m.lose > 0 {
		m.lose--
		return cas.None, 0, context.DeadlineExceeded
	}
	return index, m.rev, nil
}

func (m *Memory) usable(ctx context.Context) error {
	if m.down {
		return ErrDown
	}
	for key, v := range m.values {
		if !v.expires.IsZero() && !time.Now().Before(v.expires) {
			delete(m.values, key)
			m.rev++
		}
	}
	return ctx.Err()
}

func (m *Memory) holds(c cas.Change) bool {
	for _, cond := range c.If {
		if m.values[cond.Key].rev != cond.Rev {
			return false
		}
	}
	return true
}

func (m *Memory) do(c cas.Change) {
	m.rev++
	m.commits++
	for _, w := range c.Do {
		if w.Value == nil {
			delete(m.values, w.Key)
			continue
		}
		v := stored{value: bytes.Clone(w.Value), rev: m.rev}
		if w.TTL > 0 {
			v.expires = time.Now().Add(w.TTL)
		}
		m.values[w.Key] = v
	}
}

// Get implements cas.Store.
func (m *Memory) Get(ctx context.Context, key string) (cas.Value, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return cas.Value{}, err
	}
	v := m.values[key]
	return cas.Value{Key: key, Value: bytes.Clone(v.value), Rev: v.rev}, nil
}

// List implements cas.Store.
func (m *Memory) List(ctx context.Context, prefix string) (values []cas.Value, rev int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return nil, 0, err
	}
	for key, v := range m.values {
		if strings.HasPrefix(key, prefix) {
			values = append(values, cas.Value{Key: key, Value: bytes.Clone(v.value), Rev: v.rev})
		}
	}
	slices.SortFunc(values, func(a, b cas.Value) int { return strings.Compare(a.Key, b.Key) })
	return values, m.rev, nil
}

// Keys implements cas.Store. Memory has no history: Keys always reads the current state.
func (m *Memory) Keys(ctx context.Context, prefix string, _ int64) (keys []cas.Value, rev int64, err error) {
	keys, rev, err = m.List(ctx, prefix)
	for i := range keys {
		keys[i].Value = nil
	}
	return keys, rev, err
}
