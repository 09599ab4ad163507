package hostports

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/testbed"
)

// TestAliases: the host's own connections to an address with an alias go there, with the address of the link, and get their
// answers from the address that they were made to. There is no table without aliases.
func TestAliases(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil || os.Geteuid() != 0 {
		t.Skip("there is no nft here, or no root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var ns [2]*testbed.Namespace // of the host, and beyond the link
	for i := range ns {
		n, err := testbed.NewNamespace(ctx, fmt.Sprintf("cvha%d-%d", os.Getpid()%100000, i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Delete(context.WithoutCancel(ctx)) })
		ns[i] = n
	}
	run := func(n *testbed.Namespace, script string) string {
		t.Helper()
		out, err := n.Run(ctx, "sh", "-ec", script)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	run(ns[0], `ip link set lo up; ip link add vpp1 type veth peer tap0 netns `+ns[1].Name+`; ip link set vpp1 up
		ip addr add 10.99.0.1/32 dev lo; ip addr add 172.30.1.2/24 dev vpp1; ip addr add fd00:172::2/64 dev vpp1 nodad
		ip route add 254.0.0.0/8 via 172.30.1.1; ip route add 203.0.113.0/24 via 172.30.1.1
		ip route add fd10:96::/64 via fd00:172::1; ip route add 2001:db8::/64 via fd00:172::1`)
	run(ns[1], `ip link set lo up; ip link set tap0 up; ip addr add 172.30.1.1/24 dev tap0; ip addr add fd00:172::1/64 dev tap0 nodad
		ip addr add 254.1.2.3/32 dev lo; ip addr add fd10:96::1/128 dev lo nodad`)
	k := New(slog.New(slog.DiscardHandler))
	k.nft = func(ctx context.Context, script string, args ...string) (string, error) {
		cmd := ns[0].Command(ctx, "nft", args...)
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return string(out), err
	}
	set := func(list ...string) { // place, alias
		t.Helper()
		a := map[bool]*Aliases{false: {Link: "vpp1"}, true: {Link: "vpp1"}}
		for i := 0; i < len(list); i += 2 {
			at, to := netip.MustParseAddrPort(list[i]), netip.MustParseAddrPort(list[i+1])
			of := a[at.Addr().Is6()]
			of.Aliases = append(of.Aliases, Alias{at, "tcp", to}, Alias{at, "udp", to})
		}
		for i, ipv6 := range []bool{false, true} {
			k.SetAliases(ipv6, *a[ipv6])
			if err := k.apply(ctx, 4+i); err != nil {
				t.Fatal(err)
			}
		}
	}
	set("10.99.0.1:80", "254.1.2.3:8080", "203.0.113.1:80", "254.1.2.3:8080", "[2001:db8::1]:80", "[fd10:96::1]:8080")
	answering(t, ns[1], 8080)
	for _, to := range []string{"172.30.1.1", "fd00:172::1"} { // the kernel takes its time with a new link
		if err := testbed.Eventually(ctx, 50*time.Millisecond, func() error { return ns[0].PingOnce(ctx, to, 0) }); err != nil {
			t.Fatal(err)
		}
	}
	for to, sees := range map[string]string{
		"10.99.0.1:80": "172.30.1.2", "203.0.113.1:80": "172.30.1.2", "[2001:db8::1]:80": "fd00:172::2",
		"254.1.2.3:8080": "172.30.1.2",
	} {
		if got, err := clientSeen(ns[0], to); err != nil || got != sees {
			t.Errorf("%s: the server sees %q, want %s: %v", to, got, sees, err)
		}
	}
	if _, err := clientSeen(ns[0], "203.0.113.1:81"); err == nil {
		t.Error("another port is answered")
	}
	set()
	if tables := run(ns[0], "nft list tables"); strings.Contains(tables, aliasesTable) {
		t.Errorf("left: %s", tables)
	}
	if _, err := clientSeen(ns[0], "203.0.113.1:80"); err == nil {
		t.Error("an answer without an alias")
	}
}

// answering tells clients of TCP their addresses.
func answering(t *testing.T, ns *testbed.Namespace, port int) {
	t.Helper()
	if err := ns.Do(func() error {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, c.RemoteAddr().(*net.TCPAddr).IP.String())
				_ = c.Close()
			}
		}()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func clientSeen(ns *testbed.Namespace, to string) (seen string, err error) {
	err = ns.Do(func() error {
		c, err := net.DialTimeout("tcp", to, 800*time.Millisecond)
		if err != nil {
			return err
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		seen = string(b)
		return err
	})
	return seen, err
}
