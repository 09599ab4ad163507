package intdataplane

import (
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
)

// TestRouters tests that a node that begins to forward IPv6 first keeps what it has learned from routers, and only then.
func TestRouters(t *testing.T) {
	const conf = "net/ipv6/conf/"
	b := newBench(t, both)
	b.d.parts.advertised = func() ([]string, error) { return []string{"eth0", "eth1", "gone"}, nil }
	b.sysctls.values[forwardIPv6] = "0"
	b.sysctls.values[conf+"eth0/accept_ra"], b.sysctls.values[conf+"eth1/accept_ra"] = "1", "0"
	var written []string
	b.sysctls.order = func(path string) {
		if strings.HasPrefix(path, conf) {
			written = append(written, path)
		}
	}
	b.must()
	if want := []string{conf + "eth0/accept_ra", forwardIPv6}; !slices.Equal(written, want) {
		t.Errorf("written %q, want %q", written, want)
	}
	if got := b.sysctls.values[conf+"eth0/accept_ra"]; got != "2" {
		t.Errorf("accept_ra is %q", got)
	}
	b.sysctls.values[conf+"eth0/accept_ra"], written = "1", nil
	b.d.resyncRoutes()
	b.must()
	if want := []string{forwardIPv6}; !slices.Equal(written, want) {
		t.Errorf("on a node that forwards: written %q, want %q", written, want)
	}
}

// TestNoIPv6Forwarding tests that a cluster without IPv6 does not make its nodes IPv6 routers.
func TestNoIPv6Forwarding(t *testing.T) {
	b := newBench(t, both)
	b.d.options.NoIPv6Forwarding = true
	b.must()
	if value, wrote := b.sysctls.values[forwardIPv6]; wrote {
		t.Errorf("%s is set to %s", forwardIPv6, value)
	}
	if b.sysctls.values["net/ipv4/ip_forward"] != "1" {
		t.Error("the node does not forward IPv4")
	}
}

func TestLinksOfRoutes(t *testing.T) {
	const none = "00000000000000000000000000000000"
	routes := "20010db8000000000000000000000000 40 " + none + " 00 " + none + " 00000100 00000001 00000000 00440001     eth0\n" + // a prefix
		none + " 00 " + none + " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003     eth1\n" + // a default route
		"fe800000000000000000000000000000 40 " + none + " 00 " + none + " 00000100 00000001 00000000 00040001     eth2\n" +
		"fd000000000000000000000000000000 40 " + none + " 00 " + none + " 00000100 00000001 00000000 00000001     eth3\n" +
		"short line\n"
	if got, want := linksOf([]byte(routes)), []string{"eth0", "eth1"}; !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
}

// TestKernelRouters tests that the kernel keeps a default route that it has learned from a router.
func TestKernelRouters(t *testing.T) {
	tabletest.NeedRoot(t)
	t.Parallel()
	n := &node{Net: tabletest.NewNet(t, tabletest.Options{NoRoutes: true}), t: t, config: Config{IPv6Enabled: true,
		RulesConfig: rules.Config{Backend: rules.BackendNFT, Hostname: "node1"}}}
	for _, link := range []string{"all", "eth0"} {
		n.set("net/ipv6/conf/"+link+"/forwarding", "0")
	}
	n.set("net/ipv6/conf/eth0/accept_ra", "1")
	learned := func() bool { return strings.Contains(n.run("ip", "-6", "route", "show", "default"), "proto ra") }
	eventually(t, "a default route", func() bool { n.advertise(); return learned() })
	n.start()
	t.Cleanup(n.stop)
	n.apply(&proto.InSync{})
	if !learned() {
		t.Error("the default route is gone")
	}
	if got := n.get(forwardIPv6); got != "1" {
		t.Errorf("forwarding is %s", got)
	}
	n.run("ip", "-6", "route", "flush", "proto", "ra")
	eventually(t, "the next router advertisement is accepted", func() bool { n.advertise(); return learned() })
}

// advertise sends a router advertisement from Outside to the host.
func (n *node) advertise() {
	n.t.Helper()
	err := n.Outside.NS.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255); err != nil {
			return err
		}
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		to := &unix.SockaddrInet6{ZoneId: uint32(link.Index)}
		copy(to.Addr[:], net.IPv6linklocalallnodes)
		const lifetime = 7 << 8 // seconds, in the high byte
		return unix.Sendto(fd, []byte{134, 0, 0, 0, 64, 0, lifetime >> 8, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, to)
	})
	if err != nil {
		n.t.Fatal(err)
	}
}
