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
	case args[0] == "-f":
		family := strings.Fields(script)[1]
		t.script[family] = script
		t.writes++
		return "", nil
	}
	listing, ok := t.script[args[3]]
	if !ok {
		return "", errors.New("no such table")
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
