package ipset

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Config configures Sets. The zero value is for the process's own network namespace.
type Config struct {
	NS      *nsdo.Namespace
	Log     *slog.Logger          // nil: none
	Metrics prometheus.Registerer // nil: none
	// MetricPrefix is the prefix of the metrics' names; "": they have Felix's names.
	MetricPrefix string
	Now          func() time.Time // nil: time.Now
}

// Sets programs the sets of both families. It is used by one goroutine.
type Sets struct {
	log     *slog.Logger
	now     func() time.Time
	kernel  kernel
	metrics *metrics

	sets  map[key]*set
	dirty map[*set]struct{} // sets with changes to write, or with unknown state
	// broken holds the sets that could not be written at the last apply. The next apply retries them.
	broken map[*set]struct{}

	listed  bool              // have is valid
	have    map[string]header // our sets in the kernel
	others  int               // number of other programs' sets in the kernel, at the last listing
	doomed  map[string]int    // sets in the kernel to destroy, with the number of attempts
	temps   int               // counter for temporary names
	names   int               // see Names
	foreign bool              // another program has changed the members of a set, and they are not repaired yet
}

type key struct {
	family table.Family
	id     string
}

// New opens a socket in the namespace. Nothing is read or written yet.
func New(cfg Config) (*Sets, error) {
	k, err := dial(cfg.NS)
	if err != nil {
		return nil, err
	}
	return newSets(cfg, k)
}

func newSets(cfg Config, k kernel) (*Sets, error) {
	s := &Sets{
		log: cfg.Log, now: cfg.Now, kernel: k,
		sets: map[key]*set{}, dirty: map[*set]struct{}{}, broken: map[*set]struct{}{},
		have: map[string]header{}, doomed: map[string]int{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	var err error
	if s.metrics, err = newMetrics(cfg.Metrics, cfg.MetricPrefix); err != nil {
		return nil, err
	}
	return s, nil
}

// Close closes the socket. The kernel's sets remain.
func (s *Sets) Close() error { return s.kernel.close() }

// Replace adds a set or replaces all of its members.
func (s *Sets) Replace(f table.Family, d table.Set, members []table.Member) {
	k := key{f, d.ID}
	m := s.sets[k]
	if m == nil {
		m = newSet(f, d)
		s.sets[k] = m
	} else {
		m.describe(d)
	}
	s.name(m)
	m.replace(members)
	s.dirty[m] = struct{}{}
}

// Change adds and removes members of a set; an unknown set is ignored.
func (s *Sets) Change(f table.Family, id string, add, remove []table.Member) {
	m := s.sets[key{f, id}]
	if m == nil {
		s.log.Warn("change of a set that is not known", "family", f, "set", id)
		return
	}
	for _, a := range add {
		m.addMember(a)
	}
	for _, r := range remove {
		m.unwant(r)
	}
	if s.right(m) {
		delete(s.dirty, m)
	} else {
		s.dirty[m] = struct{}{}
	}
}

// Delete removes a set from the desired state; ApplyDestroys destroys it.
func (s *Sets) Delete(f table.Family, id string) {
	k := key{f, id}
	m := s.sets[k]
	if m == nil {
		return
	}
	delete(s.sets, k)
	delete(s.dirty, m)
	delete(s.broken, m)
	if _, ok := s.have[m.name]; ok {
		s.doomed[m.name] = 0
	}
}

// Resync makes the next apply compare all sets with the kernel's.
func (s *Sets) Resync() { s.listed = false }

// Pending reports whether ApplyUpdates or ApplyDestroys has something to do.
func (s *Sets) Pending() bool { return !s.listed || len(s.dirty) > 0 || s.destroyable() }

// Usable reports whether rules may refer to the set: it is desired, and in the kernel with the right type.
func (s *Sets) Usable(f table.Family, id string) bool {
	m := s.sets[key{f, id}]
	if m == nil {
		return false
	}
	h, ok := s.have[m.name]
	return ok && m.fits(h)
}

// Name returns the name that the set has in the kernel, or would have.
func (s *Sets) Name(f table.Family, id string) string {
	if m := s.sets[key{f, id}]; m != nil {
		return m.name
	}
	return Name(f, id)
}

// Names returns a number that changes whenever the name of a set may have changed.
func (s *Sets) Names() int { return s.names }

// name chooses the set's name: one under which the kernel has a suitable set, or a free one.
func (s *Sets) name(m *set) {
	names := names(m.family, m.id, m.typ)
	choice := names[0]
	if h, ok := s.have[names[0]]; ok && !m.fits(h) {
		choice = names[1]
	} else if h, there := s.have[names[1]]; !ok && there && m.fits(h) {
		choice = names[1]
	}
	if choice != m.name {
		if _, ok := s.have[m.name]; ok {
			s.doomed[m.name] = 0
		}
		s.names++
		m.name = choice
		m.invalidate()
	}
	delete(s.doomed, m.name)
}

// invalidate marks everything as unknown after an exchange with unknown results.
func (s *Sets) invalidate() {
	s.listed = false
	for _, m := range s.sets {
		m.invalidate()
		s.dirty[m] = struct{}{}
	}
}

// sorted returns the dirty sets in the order of their names, so that the order of writes is deterministic.
func (s *Sets) sorted() []*set {
	return slices.SortedFunc(maps.Keys(s.dirty), func(a, b *set) int {
		switch {
		case a.name < b.name:
			return -1
		case a.name > b.name:
			return 1
		}
		return 0
	})
}
