package ifacemonitor

import (
	"context"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/drivertest"
	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// TestEachFieldHasAnEffect is generated from the type: a new field without a proof fails.
func TestEachFieldHasAnEffect(t *testing.T) {
	drivertest.ProveFields(t, map[string]drivertest.Proof[Config]{
		"InterfaceExcludes": {Set: func(c *Config) { c.InterfaceExcludes = []*regexp.Regexp{regexp.MustCompile("^lo$")} },
			Has: func(t *testing.T, c Config) bool { // its state is reported, but no addresses before those of a later link
				ns := nettest.New(t)
				ns.IP("link add name a index 10 type veth peer name b index 11")
				m := New(c, ns.Namespace, nil)
				start(t, m)
				return !slices.Contains(await(t, m, "b []"), "lo [127.0.0.1 ::1]")
			}},
		"ResyncInterval": {Set: func(c *Config) { c.ResyncInterval = 10 * time.Millisecond }, Has: func(t *testing.T, c Config) bool {
			s := &script{events: make(chan error), poke: make(chan struct{}, 1)}
			var lists atomic.Int32
			again := make(chan struct{}, 1)
			s.links = func() ([]netlink.Link, error) {
				if lists.Add(1) == 3 {
					again <- struct{}{}
				}
				return nil, nil
			}
			m := New(c, nil, nil)
			m.watch.Open = func() (netlink.LinkSource, error) { return s, nil }
			start(t, m)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			select {
			case <-again:
				return true
			case <-ctx.Done():
				return false
			}
		}},
	})
}
