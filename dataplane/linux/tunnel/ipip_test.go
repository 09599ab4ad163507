package tunnel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// fakeKernel has one link, and executes the requests for it as the kernel does.
type fakeKernel struct {
	noDriver bool
	auto     bool // loading the driver creates tunl0
	link     *netlink.Link
	addrs    []netlink.Address
	writes   []string
	fail     map[string]error // by kind of write
	closed   int
}

func (f *fakeKernel) Link(name string) (netlink.Link, bool, error) {
	if err := f.fail["look"]; err != nil {
		return netlink.Link{}, false, err
	}
	if f.link == nil {
		return netlink.Link{}, false, nil
	}
	return *f.link, true, nil
}
func (f *fakeKernel) Links() ([]netlink.Link, error)                    { return nil, nil }
func (f *fakeKernel) Addresses(int) ([]netlink.Address, error)          { return slices.Clone(f.addrs), nil }
func (f *fakeKernel) Neighbours(int) ([]netlink.Neighbour, error)       { return nil, nil }
func (f *fakeKernel) Forwarding(index int) ([]netlink.Neighbour, error) { return nil, nil }
func (f *fakeKernel) Close()                                            { f.closed++ }

func (f *fakeKernel) Do(_ context.Context, b *netlink.Batch) ([]error, error) {
	var failed []error
	netlink.Messages(b.Bytes(), func(m netlink.Message) {
		failed = append(failed, f.do(m.Type, m.Flags, m.Payload))
	})
	return failed, f.fail["do"]
}

func (f *fakeKernel) do(typ, flags uint16, payload []byte) error {
	what := map[uint16]string{unix.RTM_NEWLINK: "set", unix.RTM_NEWADDR: "add", unix.RTM_DELADDR: "del"}[typ]
	if flags&unix.NLM_F_CREATE != 0 && typ == unix.RTM_NEWLINK {
		what = "new"
	}
	f.writes = append(f.writes, what)
	if err := f.fail[what]; err != nil {
		return err
	}
	switch what {
	case "new":
		return f.newLink()
	case "set":
		l, _ := netlink.ParseLink(payload)
		f.link.Flags |= binary.NativeEndian.Uint32(payload[8:])
		if l.MTU > 0 {
			f.link.MTU = l.MTU
		}
	case "add":
		a, _ := netlink.ParseAddress(payload)
		f.addrs = append(f.addrs, a)
	case "del":
		a, _ := netlink.ParseAddress(payload)
		at := slices.IndexFunc(f.addrs, func(x netlink.Address) bool { return x.Prefix == a.Prefix })
		if at < 0 {
			return unix.EADDRNOTAVAIL
		}
		f.addrs = slices.Delete(f.addrs, at, at+1)
	default:
		return fmt.Errorf("the fake does not know message type %d", typ)
	}
	return nil
}

func (f *fakeKernel) newLink() error {
	if f.noDriver {
		return fmt.Errorf("%w (Unknown device type)", unix.EOPNOTSUPP)
	}
	f.link = &netlink.Link{Index: 7, Name: "tunl0", Kind: "ipip", MTU: 1480}
	if f.auto {
		return unix.EEXIST
	}
	return nil
}

func (f *fakeKernel) state() string {
	var addrs []string
	for _, a := range f.addrs {
		addrs = append(addrs, a.Prefix.String())
	}
	return fmt.Sprintf("up=%t mtu=%d %s", f.link.Flags&unix.IFF_UP != 0, f.link.MTU, strings.Join(addrs, " "))
}

func fakeIPIP(f *fakeKernel, address string) *IPIP {
	cfg := IPIPConfig{}
	if address != "" {
		cfg.Address = netip.MustParseAddr(address)
	}
	t := NewIPIP(cfg)
	t.open = func() (kernel, error) { return f, nil }
	return t
}

func address(s string) netlink.Address {
	p := netip.MustParsePrefix(s)
	return netlink.Address{Index: 7, Prefix: p, Peer: p.Addr()}
}

func TestIPIP(t *testing.T) {
	upLink := netlink.Link{Index: 7, Name: "tunl0", Kind: "ipip", MTU: 1440, Flags: unix.IFF_UP}
	down := upLink
	down.Flags, down.MTU = 0, 1480
	for _, c := range []struct {
		what    string
		kernel  fakeKernel
		address string
		state   string
		writes  string
	}{
		{"nothing there", fakeKernel{}, "10.1.0.1", "up=true mtu=1440 10.1.0.1/32", "new set add"},
		{"the driver makes it", fakeKernel{auto: true}, "10.1.0.1", "up=true mtu=1440 10.1.0.1/32", "new set add"},
		{"all well", fakeKernel{link: &upLink, addrs: []netlink.Address{address("10.1.0.1/32")}}, "10.1.0.1",
			"up=true mtu=1440 10.1.0.1/32", ""},
		{"down, other MTU and address",
			fakeKernel{link: &down, addrs: []netlink.Address{address("10.1.0.2/32"), address("10.1.0.1/24")}},
			"10.1.0.1", "up=true mtu=1440 10.1.0.1/32", "set del del add"},
		{"no address", fakeKernel{link: &upLink, addrs: []netlink.Address{address("10.1.0.1/32")}}, "", "up=true mtu=1440 ", "del"},
		{"another link's address", fakeKernel{link: &upLink, addrs: []netlink.Address{
			{Index: 3, Prefix: netip.MustParsePrefix("10.1.0.1/32"), Peer: netip.MustParseAddr("10.1.0.1")}}}, "10.1.0.1",
			"up=true mtu=1440 10.1.0.1/32 10.1.0.1/32", "add"},
	} {
		k := &c.kernel
		if k.link != nil {
			l := *k.link
			k.link = &l
		}
		if err := fakeIPIP(k, c.address).Apply(ctx); err != nil {
			t.Errorf("%s: %v", c.what, err)
		} else if got := k.state(); got != c.state || strings.Join(k.writes, " ") != c.writes {
			t.Errorf("%s: %s by %v, want %s by %s", c.what, got, k.writes, c.state, c.writes)
		}
	}
}

func TestIPIPNoDriver(t *testing.T) {
	err := fakeIPIP(&fakeKernel{noDriver: true}, "10.1.0.1").Apply(ctx)
	if !errors.Is(err, errNoDriver) || !strings.Contains(err.Error(), "module ipip") {
		t.Error(err)
	}
}

// TestIPIPRealKernel: either the kernel has the driver, or the error names what is missing.
func TestIPIPRealKernel(t *testing.T) {
	ns := nettest.New(t)
	tun := NewIPIP(IPIPConfig{NS: ns.Namespace, Address: netip.MustParseAddr("10.1.0.1")})
	err := tun.Apply(ctx)
	if errors.Is(err, errNoDriver) {
		t.Log("this kernel has no IPIP:", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if out := ns.IP("addr show tunl0"); !strings.Contains(out, "10.1.0.1/32") || !strings.Contains(out, "mtu 1440") {
		t.Error(out)
	}
}

func TestIPIPForeignKind(t *testing.T) {
	k := &fakeKernel{link: &netlink.Link{Index: 7, Name: "tunl0", Kind: "veth"}}
	if err := fakeIPIP(k, "10.1.0.1").Apply(ctx); err == nil || len(k.writes) > 0 {
		t.Error(err, k.writes)
	}
}

// TestIPIPRun: every step may fail; each failure is retried after 1 s, and logged once; without errors Run waits 10 s.
func TestIPIPRun(t *testing.T) {
	var log strings.Builder
	k := &fakeKernel{fail: map[string]error{}}
	tun := fakeIPIP(k, "10.1.0.1")
	tun.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	steps := []string{"look", "look", "new", "set", "add", "do", ""}
	var waits []time.Duration
	k.fail[steps[0]] = unix.EPERM
	tun.pause = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		delete(k.fail, steps[0])
		steps = steps[1:]
		switch {
		case len(steps) == 0:
			return context.Canceled
		case steps[0] == "do":
			k.fail["do"] = netlink.ErrUnknown
			k.addrs = nil
		case steps[0] != "":
			k.fail[steps[0]] = unix.EPERM
		}
		return nil
	}
	if err := tun.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s := time.Second
	if want := []time.Duration{s, s, s, s, s, s, 10 * s}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if got := k.state(); got != "up=true mtu=1440 10.1.0.1/32" {
		t.Error(got)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 5 {
		t.Errorf("%d log lines, want one per kind of failure:\n%s", n, &log)
	}
	if k.closed != 2 {
		t.Errorf("closed %d times, want once when answers were lost and once at the end", k.closed)
	}
}
