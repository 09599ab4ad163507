package hostports

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// table is nft with the one table.
type table struct {
	script string
	writes int
	fail   error
}

func (t *table) run(_ context.Context, script string, args ...string) error {
	switch {
	case t.fail != nil:
		return t.fail
	case args[0] == "-f":
		t.script = script
		t.writes++
		return nil
	case strings.Contains(t.script, "chain "+args[len(args)-1]+" "):
		return nil
	}
	return errors.New("no such chain")
}

func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nft := &table{fail: errors.New("not there")}
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
		k.Set(want)
		synctest.Wait()
		nft.fail = nil
		time.Sleep(3 * firstRetry)
		if !strings.Contains(nft.script, "{ tcp . 30001, tcp . 30080, udp . 30080 }") || nft.writes != 1 {
			t.Errorf("%d writes:\n%s", nft.writes, nft.script)
		}
		want.Ports = []Port{want.Ports[2], want.Ports[1], want.Ports[0]}
		k.Set(want)
		synctest.Wait()
		stop()
		k, stop = start()
		k.Set(want)
		synctest.Wait()
		if nft.writes != 1 {
			t.Errorf("%d writes for nothing", nft.writes-1)
		}
		k.Set(Ports{})
		synctest.Wait()
		if strings.Contains(nft.script, "30080") || nft.writes != 2 {
			t.Errorf("%d writes:\n%s", nft.writes, nft.script)
		}
		stop()
	})
}
