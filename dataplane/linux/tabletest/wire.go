package tabletest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
	"contiv.dev/vswitch/internal/nsdo"
)

// makeNamespace creates a namespace with a free name of the given pattern, with lo up. Tests of one process create namespaces in parallel:
// a name that another test has taken meanwhile is skipped.
func makeNamespace(pattern string) (string, *nsdo.Namespace, error) {
	for i := 0; ; i++ {
		name := fmt.Sprintf(pattern, i)
		path := filepath.Join("/run/netns", name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		err := nettest.Add(name)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("make namespace %s: %w", name, err)
		}
		ns, err := nsdo.Open(path)
		if err != nil {
			return "", nil, err
		}
		return name, ns, ns.Do(prepareNamespace)
	}
}

// prepareNamespace switches off what would disturb the tests: duplicate address detection, reverse path filters other than those of the
// test, and the limits on ICMP errors.
func prepareNamespace() error {
	for path, value := range map[string]string{
		"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
		"ipv4/icmp_ratelimit": "0", "ipv4/icmp_msgs_per_sec": "100000", "ipv4/icmp_msgs_burst": "100000",
		"ipv6/icmp/ratelimit": "0", "ipv6/conf/all/forwarding": "1", "ipv6/conf/default/accept_dad": "0",
		"ipv6/conf/all/accept_dad": "0", "ipv6/ip_nonlocal_bind": "1", // for Anywhere
	} {
		if err := os.WriteFile("/proc/sys/net/"+path, []byte(value), 0); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

const (
	hostMAC  = "ee:ee:ee:ee:ee:ee"
	outMAC   = "02:00:00:00:07:02"
	hostUpIf = "eth0"
)

// gateway returns the gateway of the pods' default route; it exists only as a static neighbour.
func gateway(f table.Family) netip.Addr {
	if f == table.IPv4 {
		return netip.MustParseAddr("169.254.1.1")
	}
	return netip.MustParseAddr("fe80::1")
}

// veth creates a pair of the host's interface and the node's eth0, both up.
func (n *Net) veth(node *Node, hostIf, mac string) error {
	node.Iface, node.MAC = hostIf, mac
	nodeMAC, err := net.ParseMAC(mac)
	if err != nil {
		return err
	}
	ours, _ := net.ParseMAC(hostMAC)
	there, err := os.Open(node.Path())
	if err != nil {
		return err
	}
	defer there.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = hostIf, ours
	if err := n.Host.NS.Do(func() error {
		if err := netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: attrs, PeerName: "eth0", PeerHardwareAddr: nodeMAC, PeerNamespace: netlink.NsFd(int(there.Fd())),
		}); err != nil {
			return fmt.Errorf("veth %s: %w", hostIf, err)
		}
		return up(hostIf)
	}); err != nil {
		return err
	}
	return node.NS.Do(func() error { return up("eth0") })
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// settling is how long the kernel may take until interfaces and addresses work.
const settling = 20 * time.Second

// waitCarrier waits until the kernel sends through an interface again after its peer was down: its link watch takes up to a second to
// detect a carrier, and until then packets to the interface are lost without an error.
func (n *Node) waitCarrier(name string) error {
	for deadline := time.Now().Add(settling); ; time.Sleep(10 * time.Millisecond) {
		var link netlink.Link
		err := n.NS.Do(func() (err error) {
			link, err = netlink.LinkByName(name)
			return err
		})
		switch {
		case err != nil:
			return err
		case link.Attrs().OperState == netlink.OperUp:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s of %s is still %s", name, n.Name, link.Attrs().OperState)
		}
	}
}

// waitAddress waits until the kernel treats an address of the node as local. It adds a new IPv6 address to its routes in the background,
// even without duplicate address detection.
func (n *Node) waitAddress(a netip.Addr) error {
	for deadline := time.Now().Add(settling); ; time.Sleep(10 * time.Millisecond) {
		var routes []netlink.Route
		err := n.NS.Do(func() (err error) {
			routes, err = netlink.RouteGet(a.AsSlice())
			return err
		})
		if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s of %s is not used: routes %v, error %v", a, n.Name, routes, err)
		}
	}
}

func (n *Net) wireOutside() error {
	if err := n.veth(n.Outside, hostUpIf, outMAC); err != nil {
		return err
	}
	n.Host.MAC = hostMAC
	if err := n.Host.NS.Do(func() error {
		return errors.Join(eachFamily(func(f table.Family) error {
			out := n.Outside.Addr(f)
			return errors.Join(addAddr(hostUpIf, n.Host.Addr(f), bitsOnLink(f)), addNeigh(hostUpIf, out, outMAC),
				addRoute(hostUpIf, netip.PrefixFrom(unspecified(f), 0), out, netip.Addr{}))
		})...)
	}); err != nil {
		return err
	}
	return n.Outside.NS.Do(func() error {
		return errors.Join(eachFamily(func(f table.Family) error {
			host := n.Host.Addr(f)
			errs := []error{addAddr("eth0", n.Outside.Addr(f), bitsOnLink(f)), addNeigh("eth0", host, hostMAC),
				addRoute("eth0", netip.PrefixFrom(unspecified(f), 0), host, netip.Addr{})}
			for _, p := range Anywhere(f) {
				errs = append(errs, addLocal(p))
			}
			return errors.Join(errs...)
		})...)
	})
}

// wirePod connects a pod as Calico does: an address of full length, and a default route to a gateway on the link.
func (n *Net) wirePod(pod *Node, i int, noRoutes bool) error {
	hostIf := fmt.Sprintf("cali%d", i)
	if err := n.veth(pod, hostIf, fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&0xff)); err != nil {
		return err
	}
	if err := pod.NS.Do(func() error {
		return errors.Join(eachFamily(func(f table.Family) error {
			a, gw := pod.Addr(f), gateway(f)
			return errors.Join(addAddr("eth0", a, a.BitLen()), addNeigh("eth0", gw, hostMAC),
				addRoute("eth0", netip.PrefixFrom(unspecified(f), 0), gw, netip.Addr{}))
		})...)
	}); err != nil || noRoutes {
		return err
	}
	return n.Host.NS.Do(func() error {
		return errors.Join(eachFamily(func(f table.Family) error {
			a := pod.Addr(f)
			return errors.Join(addNeigh(hostIf, a, pod.MAC),
				addRoute(hostIf, netip.PrefixFrom(a, a.BitLen()), netip.Addr{}, n.Host.Addr(f)))
		})...)
	})
}

func eachFamily(f func(table.Family) error) []error { return []error{f(table.IPv4), f(table.IPv6)} }

func bitsOnLink(f table.Family) int {
	if f == table.IPv4 {
		return 24
	}
	return 64
}

func unspecified(f table.Family) netip.Addr {
	if f == table.IPv4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func addAddr(dev string, a netip.Addr, bits int) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return err
	}
	flags := 0
	if a.Is6() {
		flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, bits)), Flags: flags}); err != nil {
		return fmt.Errorf("address %s on %s: %w", a, dev, err)
	}
	return nil
}

func addNeigh(dev string, a netip.Addr, mac string) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return err
	}
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return err
	}
	return netlink.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: hw,
	})
}

// addRoute adds a route over dev, with next hop gw if that is valid, otherwise on the link.
func addRoute(dev string, dst netip.Prefix, gw, src netip.Addr) error {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return err
	}
	r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(dst)}
	switch {
	case gw.IsValid():
		r.Gw, r.Flags = gw.AsSlice(), int(netlink.FLAG_ONLINK)
	case dst.Addr().Is4():
		r.Scope = netlink.SCOPE_LINK
	}
	if src.IsValid() {
		r.Src = src.AsSlice()
	}
	if err := netlink.RouteAdd(r); err != nil {
		return fmt.Errorf("route %s dev %s: %w", dst, dev, err)
	}
	return nil
}

// addLocal makes every address of p local to the namespace.
func addLocal(p netip.Prefix) error {
	link, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	err = netlink.RouteAdd(&netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: ipNet(p), Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL,
		Scope: netlink.SCOPE_HOST,
	})
	if err != nil {
		return fmt.Errorf("local %s: %w", p, err)
	}
	return nil
}
