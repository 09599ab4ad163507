package hostports

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tables is nft with our tables, by family.
type tables struct {
	mu     sync.Mutex
	script map[string]string
	writes int
	fail   error
	refuse string // scripts with this
}

// nameOf is a family, with the table's name unless it is that of node ports.
func nameOf(family, table string) string {
	if table == tableName {
		return family
	}
	return family + " " + table
}

// with looks at the tables, or changes them, when nobody else does.
func (t *tables) with(f func()) {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

func (t *tables) run(_ context.Context, script string, args ...string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.fail != nil:
		return "", t.fail
	case t.refuse != "" && strings.Contains(script, t.refuse):
		return "", errors.New("refused")
	case args[0] == "-f":
		words := strings.Fields(script)
		name := nameOf(words[1], words[2])
		delete(t.script, name)
		if strings.Count(script, "table ") > 2 {
			t.script[name] = script
		}
		t.writes++
		return "", nil
	}
	listing, ok := t.script[nameOf(args[3], args[4])]
	if !ok {
		return "", errors.New("Error: No such file or directory")
	}
	return listing, nil
}

func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nft := &tables{script: map[string]string{}, fail: errors.New("not there")}
		start := func() (*Keeper, func()) {
			k := New(slog.New(slog.DiscardHandler))
			k.nft = nft.run
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _ = k.Run(ctx) }()
			return k, func() { cancel(); synctest.Wait() }
		}
		k, stop := start()
		synctest.Wait()
		want := Ports{
			Ports: []Port{{"udp", 30080}, {"tcp", 30080}, {"tcp", 30001}}, Link: "vpp1",
			At: []netip.Addr{netip.MustParseAddr("10.99.0.1")}, To: netip.MustParseAddr("172.30.1.1"),
		}
		k.Set(false, want)
		nft.with(func() { nft.fail = nil })
		time.Sleep(3 * firstRetry)
		nft.with(func() {
			if !strings.Contains(nft.script["ip"], "{ tcp . 30001, tcp . 30080, udp . 30080 }") || nft.writes != 1 {
				t.Errorf("%d writes:\n%s", nft.writes, nft.script["ip"])
			}
		})
		want.Ports = []Port{want.Ports[2], want.Ports[1], want.Ports[0]}
		k.Set(false, want)
		synctest.Wait()
		stop()
		k, stop = start()
		k.Set(false, want)
		nft.with(func() {
			if nft.writes != 1 {
				t.Errorf("%d writes for nothing", nft.writes-1)
			}
		})
		k.Set(false, Ports{})
		nft.with(func() {
			if strings.Contains(nft.script["ip"], "30080") || nft.writes != 2 {
				t.Errorf("%d writes:\n%s", nft.writes, nft.script["ip"])
			}
		})
		stop()
	})
}

// TestRepair: what somebody else does to the tables is undone, and only that.
func TestRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nft := &tables{script: map[string]string{}}
		k := New(slog.New(slog.DiscardHandler))
		k.nft = nft.run
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = k.Run(ctx) }()
		link := netip.MustParseAddr("172.30.1.1")
		k.Set(false, Ports{Ports: []Port{{"tcp", 30001}}, Link: "vpp1", To: link})
		k.Set(true, Ports{Link: "vpp1", Own: netip.MustParseAddr("fd00::2"), Alias: netip.MustParseAddr("fd00::9")})
		time.Sleep(5 * checkEvery)
		synctest.Wait()
		var good string
		nft.with(func() {
			good = nft.script["ip"]
			if nft.writes != 2 || !strings.Contains(nft.script["ip6"], "ip6 saddr fd00::2 ip6 saddr set fd00::9") {
				t.Fatalf("%d writes: %v", nft.writes, nft.script)
			}
			delete(nft.script, "ip")
		})
		time.Sleep(2 * checkEvery)
		nft.with(func() {
			if nft.writes != 3 || nft.script["ip"] != good {
				t.Errorf("deleted: %d writes: %v", nft.writes, nft.script)
			}
			nft.script["ip"] = strings.ReplaceAll(good, "tcp . 30001", "")
		})
		time.Sleep(2 * checkEvery)
		nft.with(func() {
			if nft.writes != 4 || nft.script["ip"] != good {
				t.Errorf("changed: %d writes: %v", nft.writes, nft.script)
			}
		})
		cancel()
		synctest.Wait()
	})
}

// TestPlaces: a table of places is there only while there are some; one that cannot be brought up to date lets nobody in.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nft := &tables{script: map[string]string{}}
		k := New(slog.New(slog.DiscardHandler))
		k.nft = nft.run
		var led []answers
		k.lead = func(a answers) error { led = append(led, a); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = k.Run(ctx) }()
		const table = "ip6 " + placesTable
		place := Place{
			At: netip.MustParseAddrPort("[2001:db8::1]:80"), Proto: "tcp", To: netip.MustParseAddrPort("[fd00:96::1]:80"),
			From: []netip.Prefix{
				netip.MustParsePrefix("2001:db8:1:1::/64"), netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("fd00::/8"),
			},
		}
		want := Places{Link: "vpp1", Via: netip.MustParseAddr("fd00:17::1")}
		k.SetPlaces(true, want)
		time.Sleep(3 * checkEvery)
		nft.with(func() {
			if nft.writes != 0 || len(led) != 1 || led[0].via.IsValid() {
				t.Errorf("no places: %d writes, %v", nft.writes, led)
			}
		})
		want.Places = []Place{place}
		k.SetPlaces(true, want)
		nft.with(func() {
			const allowed = "elements = { 2001:db8::1 . tcp . 80 . 2001:db8:1::/48, 2001:db8::1 . tcp . 80 . fd00::/8 }"
			if !strings.Contains(nft.script[table], allowed) || nft.writes != 1 || led[len(led)-1].via != want.Via {
				t.Errorf("%d writes, %v:\n%s", nft.writes, led, nft.script[table])
			}
			nft.refuse = "tcp . 81"
		})
		want.Places = []Place{place, place}
		want.Places[1].At = netip.MustParseAddrPort("[2001:db8::1]:81")
		k.SetPlaces(true, want)
		nft.with(func() {
			if nft.script[table] != "" {
				t.Errorf("still there, and not up to date:\n%s", nft.script[table])
			}
			nft.refuse = ""
		})
		time.Sleep(2 * firstRetry)
		nft.with(func() {
			if !strings.Contains(nft.script[table], "tcp . 81") {
				t.Errorf("not there:\n%s", nft.script[table])
			}
		})
		k.SetPlaces(true, Places{})
		nft.with(func() {
			if nft.script[table] != "" || led[len(led)-1].via.IsValid() {
				t.Errorf("left: %v\n%s", led[len(led)-1], nft.script[table])
			}
		})
		cancel()
		synctest.Wait()
	})
}
