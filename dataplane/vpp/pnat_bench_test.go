package vpp

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	vpp_pnat "contiv.dev/vswitch/dataplane/nb/vpp/pnat"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestAliasFigures logs how long changes of aliases take (docs/adr/0009 quotes them).
func TestAliasFigures(t *testing.T) {
	if testing.Short() || !testing.Verbose() {
		t.Skip("skipped: figures are for people who look at them (go test -v)")
	}
	g := vpptest.Start(t, vpptest.Options{Buffers: 4096})
	for _, pods := range []int{10, 100} {
		for _, places := range []int{4, 40, 256} {
			aliasFigures(t, &target{name: "real", socket: g.Socket(), cli: g.CLI, real: g}, pods, places)
		}
	}
}

func aliasFigures(t *testing.T, g *target, pods, places int) {
	desired := func(pods, places int) values {
		var list []string
		for n := range places {
			list = append(list, fmt.Sprintf("203.0.%d.%d:80", n/200, n%200+1))
		}
		v := natOn()
		for n := range pods {
			name := fmt.Sprint("pod", n)
			v = append(v, loop(name, "", withIP(fmt.Sprintf("10.1.%d.1/32", n))), natIf(name, true, true, false), aliases(name, list...))
		}
		return v
	}
	a := newAgent(t, g, Deps{})
	bare := slices.DeleteFunc(desired(pods+1, 1), func(v proto.Message) bool { return len(only(values{v})) > 0 })
	a.resync(bare...)
	took := func(what string, do func()) {
		begin, before := time.Now(), a.conn.Writes()
		do()
		t.Logf("%d pods, %d places, %s: %v, %d requests", pods, places, what, time.Since(begin).Round(100*time.Microsecond),
			a.conn.Writes()-before)
	}
	change := func(v values) func() { return func() { a.commit(txn.Update, kvs(t, v)...) } }
	took("put", change(desired(pods, places)))
	took("resync", func() { a.resync(all(bare, desired(pods, places))...) })
	took("one place less", change(desired(pods, places-1)))
	took("one place more", change(desired(pods, places)))
	took("one pod more", change(desired(pods+1, places)))
	took("none", func() { a.commit(txn.Update, deletions(t, only(desired(pods+1, places)))...) })
	a.resync()
	a.stop()
}

// only are the aliases.
func only(all values) (out values) {
	for _, v := range all {
		if v, ok := v.(*vpp_pnat.Interface); ok {
			out = append(out, v)
		}
	}
	return out
}
