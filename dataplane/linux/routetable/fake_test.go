package routetable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// fakeLink is a link of fakeKernel.
type fakeLink struct{ up bool }

// fakeKernel behaves as rtnetlink does for one family, and checks that no link gets the connections of another one.
type fakeKernel struct {
	t      testing.TB
	links  map[int]*fakeLink
	routes []route
	neighs map[neighKey]mac

	execs, writes, lists int
	before               func(o op) // called before each write
	fail                 func(o op) error
	lose                 func() bool // whether to lose the answer, after some writes
	failList             func() bool

	mu     sync.Mutex
	served map[netip.Addr]int // address → the link that last had it, until its connections are removed
	forgot []netip.Addr
}

func newFake(t testing.TB) *fakeKernel {
	return &fakeKernel{t: t, links: map[int]*fakeLink{}, neighs: map[neighKey]mac{}, served: map[netip.Addr]int{}}
}

var errFault = errors.New("injected fault")

func (f *fakeKernel) Routes(protocol uint8, index int) ([]route, error) {
	f.lists++
	if f.failList != nil && f.failList() {
		return nil, errFault
	}
	var out []route
	for _, r := range f.routes {
		if (protocol == 0 || r.protocol == protocol) && (index == 0 || r.index == index) {
			out = append(out, r)
		}
	}
	return out, nil
}

func (f *fakeKernel) Neighbours(_ uint8, index int) (map[neighKey]mac, error) {
	out := map[neighKey]mac{}
	for k, m := range f.neighs {
		if index == 0 || k.index == index {
			out[k] = m
		}
	}
	return out, nil
}

func (f *fakeKernel) Close() {}

// session is a socket.
type session struct {
	*fakeKernel
	open *int
}

func (s session) Close() { *s.open-- }

func (f *fakeKernel) Exec(_ context.Context, _ uint8, ops []op) (failed []error, err error) {
	f.execs++
	for i, o := range ops {
		if f.lose != nil && f.lose() {
			return nil, fmt.Errorf("%w: %w", errFault, netlink.ErrUnknown)
		}
		if f.before != nil {
			f.before(o)
		}
		var err error
		if f.fail != nil {
			err = f.fail(o)
		}
		if err == nil {
			f.writes++
			err = f.do(o)
		}
		if err != nil {
			if failed == nil {
				failed = make([]error, len(ops))
			}
			failed[i] = err
		}
	}
	return failed, nil
}

func (f *fakeKernel) do(o op) error {
	switch o.verb {
	case delRoute:
		at := slices.IndexFunc(f.routes, func(r route) bool {
			return r.dst == o.route.dst && r.metric == o.route.metric && r.protocol == o.route.protocol && r.index == o.route.index &&
				r.gw == o.route.gw && r.tos == o.route.tos
		})
		if at < 0 {
			return unix.ESRCH
		}
		f.routes = slices.Delete(f.routes, at, at+1)
		return nil
	case addRoute, replaceRoute:
		return f.put(o)
	}
	if l := f.links[o.neigh.index]; l == nil {
		return unix.ENODEV
	}
	if o.verb == setNeigh {
		f.neighs[o.neigh] = o.mac
		return nil
	}
	if _, ok := f.neighs[o.neigh]; !ok {
		return unix.ENOENT
	}
	delete(f.neighs, o.neigh)
	return nil
}

func (f *fakeKernel) put(o op) error {
	if o.route.index > 0 {
		if l := f.links[o.route.index]; l == nil {
			return unix.ENODEV
		} else if !l.up {
			return unix.ENETDOWN
		}
	}
	at := slices.IndexFunc(f.routes, func(r route) bool {
		return r.dst == o.route.dst && r.metric == o.route.metric && r.tos == o.route.tos
	})
	switch {
	case at >= 0 && o.verb == addRoute:
		return unix.EEXIST
	case at >= 0:
		f.routes[at] = o.route
	default:
		f.routes = append(f.routes, o.route)
	}
	f.noteServed(o.route)
	return nil
}

// noteServed fails the test if an address moves to another link before its connections have been removed.
func (f *fakeKernel) noteServed(r route) {
	if !r.host() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if last, ok := f.served[r.dst.Addr()]; ok && last != r.index {
		f.t.Errorf("%s goes from link %d to link %d with its connections", r.dst, last, r.index)
	}
	f.served[r.dst.Addr()] = r.index
}

func (f *fakeKernel) conntrack(_ context.Context, addrs []netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range addrs {
		delete(f.served, a)
		f.forgot = append(f.forgot, a)
	}
	return nil
}

func (f *fakeKernel) forgotten() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := strings.Trim(fmt.Sprint(f.forgot), "[]")
	f.forgot = nil
	return s
}

// setLink sets a link up or down; down removes its routes and neighbours.
func (f *fakeKernel) setLink(index int, up bool) {
	if up {
		f.links[index] = &fakeLink{up: true}
		return
	}
	f.links[index] = &fakeLink{}
	f.drop(index)
}

func (f *fakeKernel) delLink(index int) {
	delete(f.links, index)
	f.drop(index)
}

func (f *fakeKernel) drop(index int) {
	f.routes = slices.DeleteFunc(f.routes, func(r route) bool { return r.index == index })
	maps.DeleteFunc(f.neighs, func(k neighKey, _ mac) bool { return k.index == index })
}

// state returns the kernel's objects, one line each.
func (f *fakeKernel) state() string {
	var out []string
	for _, r := range f.routes {
		s := fmt.Sprintf("%s dev %d proto %d", r.dst, r.index, r.protocol)
		if r.typ != unix.RTN_UNICAST {
			s = fmt.Sprintf("type %d %s", r.typ, s)
		}
		if r.gw.IsValid() {
			s += " via " + r.gw.String()
		}
		if r.mtu > 0 {
			s += fmt.Sprintf(" mtu %d", r.mtu)
		}
		out = append(out, s)
	}
	for k, m := range f.neighs {
		out = append(out, fmt.Sprintf("neigh %s dev %d %x", k.ip, k.index, m))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// fakeTable returns a table on a fake kernel.
func fakeTable(f *fakeKernel, cfg Config) *Table {
	if cfg.Family == 0 {
		cfg.Family = 4
	}
	cfg.Conntrack = f.conntrack
	t := New(cfg)
	open := 0
	t.open = func() (kernel, error) {
		open++
		return session{f, &open}, nil
	}
	f.t.Cleanup(func() {
		if err := t.Close(); err != nil {
			f.t.Error(err)
		}
		if open != 0 {
			f.t.Errorf("%d sockets are open", open)
		}
	})
	return t
}

func chance(rnd *rand.Rand, percent int) bool { return rnd.IntN(100) < percent }
