package routetable

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Table maintains the routes of one family. It is used by one goroutine.
type Table struct {
	cfg      Config
	protocol uint8
	log      *slog.Logger
	now      func() time.Time
	open     func() (kernel, error)
	kernel   kernel // nil: not connected

	classes map[string][]claim
	invalid map[string]error // class → error in its targets
	entries map[netip.Prefix]*entry
	changed []*entry // entries whose claims or links have changed
	todo    []*entry // entries that may differ from the kernel
	resting []*entry // unknown routes in their time of grace
	strays  []route  // our routes in the kernel, in excess of entries
	neighs  map[neighKey]*neighbour
	neighDo map[neighKey]*neighbour

	links  map[string]*link
	names  map[int]string
	seen   map[int]time.Time // when a link was first seen, in a report or in a listing
	resync bool
	verify map[int]bool // links whose routes the kernel may have removed
	again  time.Time    // the first end of a time of grace; zero: never

	flush *flusher
}

type link struct {
	name  string
	index int
	up    bool
	wants map[*entry]struct{} // entries with claims over the link
}

// New returns a table. It does no I/O before Apply.
func New(cfg Config) *Table {
	if cfg.Protocol == 0 {
		cfg.Protocol = DefaultProtocol
	}
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	t := &Table{
		cfg: cfg, protocol: uint8(cfg.Protocol), log: cfg.Log, now: cfg.Now,
		open:    func() (kernel, error) { return openSocket(cfg.NS, afOf(cfg.Family), cfg.Timeout) },
		classes: map[string][]claim{}, invalid: map[string]error{}, entries: map[netip.Prefix]*entry{},
		neighs: map[neighKey]*neighbour{}, neighDo: map[neighKey]*neighbour{},
		links: map[string]*link{}, names: map[int]string{}, seen: map[int]time.Time{},
		resync: true, verify: map[int]bool{},
	}
	if cfg.Conntrack != nil {
		t.flush = newFlusher(fmt.Sprintf("routetable-v%d-conntrack", cfg.Family), cfg.Conntrack, cfg.Log)
	}
	return t
}

// SetRoutes replaces all routes of a class, for example "ep/<link>" or "vxlan". If several classes claim a route to the same CIDR, the one
// with the lowest name gets it, of those whose link is up.
func (t *Table) SetRoutes(class string, targets []Target) {
	var wrong []error
	list := make([]claim, 0, len(targets))
	for i := range targets {
		c, err := claimOf(class, t.cfg.Family, &targets[i])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("route %s of %s: %w", targets[i].CIDR, class, err))
			continue
		}
		list = append(list, c)
	}
	t.replaceClaims(t.classes[class], list)
	delete(t.classes, class)
	if len(list) > 0 {
		t.classes[class] = list
	}
	delete(t.invalid, class)
	if wrong != nil {
		t.invalid[class] = errors.Join(wrong...)
	}
}

// replaceClaims replaces the claims of a class. A list may contain a claim more than once.
func (t *Table) replaceClaims(old, list []claim) {
	same := 0 // lists mostly have the same order
	for same < len(old) && same < len(list) && old[same] == list[same] {
		same++
	}
	if same == len(old) { // no claim is removed
		for _, c := range list[same:] {
			t.insertClaim(c)
		}
		return
	}
	stays := make(map[claim]struct{}, len(list))
	for _, c := range list {
		stays[c] = struct{}{}
	}
	for _, c := range old[same:] {
		if _, ok := stays[c]; !ok {
			t.removeClaim(c)
		}
	}
	for _, c := range list[same:] {
		t.insertClaim(c)
	}
}

// DeleteClass removes all routes of a class.
func (t *Table) DeleteClass(class string) { t.SetRoutes(class, nil) }

func (t *Table) insertClaim(c claim) {
	e := t.entryOf(c.dst)
	if !e.addClaim(c) {
		return
	}
	e.known = true
	if c.iface != "" {
		t.linkOf(c.iface).wants[e] = struct{}{}
	}
	t.markChanged(e)
}

func (t *Table) removeClaim(c claim) {
	e := t.entryOf(c.dst)
	if !e.dropClaim(c) {
		return
	}
	if c.iface != "" && !e.claimsLink(c.iface) {
		l := t.linkOf(c.iface)
		delete(l.wants, e)
		t.tidyLink(l)
	}
	t.markChanged(e)
}

func (t *Table) entryOf(dst netip.Prefix) *entry {
	e := t.entries[dst]
	if e == nil {
		e = &entry{dst: dst}
		e.claims = e.room[:0]
		t.entries[dst] = e
	}
	return e
}

func (t *Table) markChanged(e *entry) {
	if !e.changed {
		e.changed = true
		t.changed = append(t.changed, e)
	}
}

func (t *Table) markTodo(e *entry) {
	if !e.todo {
		e.todo = true
		t.todo = append(t.todo, e)
	}
}

func (t *Table) linkOf(name string) *link {
	l := t.links[name]
	if l == nil {
		l = &link{name: name, wants: map[*entry]struct{}{}}
		t.links[name] = l
	}
	return l
}

// tidyLink drops a link that does not exist and that no claim uses.
func (t *Table) tidyLink(l *link) {
	if l.up || len(l.wants) > 0 {
		return
	}
	delete(t.links, l.name)
	t.removeIndex(l)
}

func (t *Table) removeIndex(l *link) {
	if t.names[l.index] == l.name {
		delete(t.names, l.index)
		delete(t.seen, l.index)
		delete(t.verify, l.index)
	}
}

// OnIfaceStateChanged records the state of a link, as the interface monitor reports it: index 0 or up false if the link is not usable. A
// repeated report of up makes the next Apply compare the link's routes with the kernel.
func (t *Table) OnIfaceStateChanged(name string, index int, up bool) {
	l := t.linkOf(name)
	if index > 0 && index != l.index {
		t.removeIndex(l)
		if other := t.links[t.names[index]]; other != nil && other.index == index {
			other.up = false // renamed: the index now belongs to this link
			t.linkChanged(other)
		}
		l.index = index
		t.names[index] = name
		t.seen[index] = t.now()
	}
	l.up = up && index > 0
	t.linkChanged(l)
	t.tidyLink(l)
}

// linkChanged queues the entries with claims over a link. The kernel may have removed their routes while the link was down.
func (t *Table) linkChanged(l *link) {
	for e := range l.wants {
		t.markChanged(e)
		if e.there && e.actual.index == l.index {
			t.verify[l.index] = true
		}
	}
}

// OnRouteRemoved makes the next Apply compare the routes of the link over which the route to dst led, unless this table has removed the route.
func (t *Table) OnRouteRemoved(dst netip.Prefix) {
	e := t.entries[dst]
	switch {
	case e == nil || !e.there:
	case e.actual.index == 0:
		t.resync = true
	default:
		t.verify[e.actual.index] = true
	}
}

// Resync makes the next Apply compare everything with the kernel.
func (t *Table) Resync() { t.resync = true }

// Pending reports whether Apply would have something to do.
func (t *Table) Pending() bool {
	if t.resync || len(t.changed)+len(t.todo)+len(t.invalid) > 0 || !t.again.IsZero() && !t.now().Before(t.again) {
		return true
	}
	for index := range t.verify {
		if t.usable(index) {
			return true
		}
	}
	for key, n := range t.neighDo {
		if len(n.users) == 0 || t.usable(key.index) {
			return true
		}
	}
	return false
}

// usable reports whether the link with an index is up.
func (t *Table) usable(index int) bool {
	l := t.links[t.names[index]]
	return l != nil && l.up && l.index == index
}

// Again returns the delay after which Apply should be called because the grace of an unknown route ends; 0: not needed.
func (t *Table) Again() time.Duration {
	if t.again.IsZero() {
		return 0
	}
	return max(t.again.Sub(t.now()), time.Millisecond)
}

// Close ends background work and closes the socket. The kernel's routes remain. Close must not be called while Apply is running.
func (t *Table) Close() error {
	t.disconnect()
	if t.flush == nil {
		return nil
	}
	return t.flush.stop()
}

// disconnect closes the socket after a failure, so that the next Apply reads the kernel's state again.
func (t *Table) disconnect() {
	if t.kernel != nil {
		t.kernel.Close()
	}
	t.kernel, t.resync = nil, true
}

// metric returns the metric of all our routes.
func (t *Table) metric() uint32 {
	if t.cfg.Family == table.IPv6 {
		return ipv6Metric
	}
	return 0
}
