package services

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/nfttest"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// backendsOf returns the backends with the numbers in a text: "1-3 7".
func backendsOf(text string) (list []string) {
	for part := range strings.FieldsSeq(text) {
		first, last, several := strings.Cut(part, "-")
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		if !several {
			to = from
		}
		for i := from; i <= to; i++ {
			list = append(list, fmt.Sprintf("10.1.1.%d", i))
		}
	}
	return list
}

// TestServicesChangeUnderFlood: during all changes of a service's backends, each new connection gets one.
func TestServicesChangeUnderFlood(t *testing.T) {
	for _, c := range []struct {
		what string
		from []string
	}{
		{"another backend", []string{"1", "2"}},
		{"most of them go", []string{"1-50", "1-3"}},
		{"all but one go", []string{"1-4", "1"}},
		{"others come, more and fewer", []string{"1-20", "40-60", "7"}},
	} {
		t.Run(c.what, func(t *testing.T) { changeUnderFlood(t, c.from, false) })
	}
	t.Run("another group, as when a traffic policy changes", func(t *testing.T) {
		changeUnderFlood(t, []string{"1-3", "1-3"}, true)
	})
}

func changeUnderFlood(t *testing.T, sets []string, groups bool) {
	f := nfttest.NewFlooded(t)
	s, err := Open(Options{NS: f.Node.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.SetPods(table.IPv4, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")})
	var versions []*lb.Service
	for i, set := range sets {
		svc := nfttest.Service(t, "a", nfttest.VIP, 0, backendsOf(set)...)
		if groups && i%2 == 1 {
			svc.Ports[0].Frontends[0].Inside.ID ^= 1 << 40
		}
		versions = append(versions, svc)
	}
	s.Set(versions[0])
	s.mustApply(t)
	f.Begin(t)
	const changes, packets = 2500, 20000
	translated, n := 0, 0
	for end := time.Now().Add(30 * time.Second); n < changes || translated < packets; n++ {
		s.Set(versions[n%len(versions)])
		if res := s.Apply(context.Background()); res.Err != nil {
			t.Fatal(res.Err)
		}
		if n%500 == 499 {
			if _, translated = f.Counts(t); time.Now().After(end) {
				t.Fatalf("only %d changes and %d connections in 30 s", n, translated)
			}
		}
	}
	f.End(t)
	if missed, translated := f.Counts(t); missed > 0 {
		t.Errorf("%d of %d connections got no backend in %d changes", missed, missed+translated, n)
	}
}
