package diag

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/ipaddr"
)

// maxObjects bounds each list of the kernel's state.
const maxObjects = 50000

// listTries is how often a list is read again because it has changed during the reading.
const listTries = 20

// whole lists again until nothing has changed during the listing: otherwise a listing may lack objects that existed all the
// time. If the objects keep changing, it returns the last listing.
func whole[T any](list func() ([]T, error)) (out []T, err error) {
	for range listTries {
		if out, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
	return out, nil
}

// readKernel lists the objects of the kernel in the agent's network namespace.
func readKernel() (*Kernel, error) {
	links, err := whole(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	k := &Kernel{NotForwarding: notForwarding(),
		Routes: []KernelRoute{}, Neighbours: []KernelNeighbour{}, Forwarding: []KernelForward{}, Links: []KernelLink{}}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
		if len(k.Links) < maxObjects {
			k.Links = append(k.Links, kernelLink(l))
		}
		if l.Type() == "vxlan" {
			if err := k.addForwarding(l, names); err != nil {
				return nil, err
			}
		}
	}
	filter := &netlink.Route{Table: unix.RT_TABLE_MAIN}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := whole(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, filter, netlink.RT_FILTER_TABLE)
		})
		if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
			return nil, fmt.Errorf("routes: %w", err)
		}
		for _, r := range routes {
			if len(k.Routes) < maxObjects {
				k.Routes = append(k.Routes, kernelRoute(r, names))
			}
		}
		neighbours, err := whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, family) })
		if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
			return nil, fmt.Errorf("neighbours: %w", err)
		}
		for _, n := range neighbours {
			if len(k.Neighbours) < maxObjects && n.HardwareAddr != nil {
				k.Neighbours = append(k.Neighbours, KernelNeighbour{
					IP: n.IP.String(), MAC: n.HardwareAddr.String(), Device: names[n.LinkIndex], State: neighbourState(n.State),
				})
			}
		}
	}
	return k, nil
}

// forwardingOf returns the file that reports whether the kernel forwards packets of a family.
func forwardingOf(family string) string {
	if family == "IPv6" {
		return "net/ipv6/conf/all/forwarding"
	}
	return "net/ipv4/ip_forward"
}

// notForwarding returns the families whose packets the kernel does not forward; a family that the kernel lacks is not included.
func notForwarding() (out []string) {
	for _, family := range []string{"IPv4", "IPv6"} {
		if text, err := os.ReadFile("/proc/sys/" + forwardingOf(family)); err == nil && strings.TrimSpace(string(text)) == "0" {
			out = append(out, family)
		}
	}
	return out
}

func (k *Kernel) addForwarding(l netlink.Link, names map[int]string) error {
	entries, err := whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(l.Attrs().Index, unix.AF_BRIDGE) })
	if err != nil {
		return fmt.Errorf("forwarding entries of %s: %w", l.Attrs().Name, err)
	}
	for _, e := range entries {
		if len(k.Forwarding) < maxObjects && e.IP != nil {
			k.Forwarding = append(k.Forwarding, KernelForward{
				MAC: e.HardwareAddr.String(), Dst: e.IP.String(), Device: names[e.LinkIndex],
			})
		}
	}
	return nil
}

func kernelLink(l netlink.Link) KernelLink {
	a := l.Attrs()
	out := KernelLink{Name: a.Name, Type: l.Type(), MAC: a.HardwareAddr.String(), MTU: a.MTU, Up: a.Flags&net.FlagUp != 0}
	if s := a.Statistics; s != nil {
		out.RxBytes, out.TxBytes, out.Dropped = s.RxBytes, s.TxBytes, s.RxDropped+s.TxDropped
	}
	if v, ok := l.(*netlink.Vxlan); ok {
		out.VNI = v.VxlanId
		if v.SrcAddr != nil {
			out.Local = v.SrcAddr.String()
		}
	}
	return out
}

func kernelRoute(r netlink.Route, names map[int]string) KernelRoute {
	out := KernelRoute{Dst: "default", Device: names[r.LinkIndex], Type: routeType(r.Type), Proto: int(r.Protocol)}
	if r.Dst != nil {
		out.Dst = r.Dst.String()
	}
	if r.Gw != nil {
		out.Via = r.Gw.String()
	}
	return out
}

func routeType(t int) string {
	switch t {
	case unix.RTN_UNICAST:
		return "unicast"
	case unix.RTN_LOCAL:
		return "local"
	case unix.RTN_BLACKHOLE:
		return "blackhole"
	case unix.RTN_UNREACHABLE:
		return "unreachable"
	case unix.RTN_PROHIBIT:
		return "prohibit"
	}
	return fmt.Sprintf("type %d", t)
}

func neighbourState(s int) string {
	switch {
	case s&unix.NUD_PERMANENT != 0:
		return "permanent"
	case s&unix.NUD_FAILED != 0:
		return "failed"
	case s&unix.NUD_INCOMPLETE != 0:
		return "incomplete"
	case s&unix.NUD_NOARP != 0:
		return "noarp"
	case s&unix.NUD_REACHABLE != 0:
		return "reachable"
	case s&(unix.NUD_STALE|unix.NUD_DELAY|unix.NUD_PROBE) != 0:
		return "stale"
	}
	return fmt.Sprintf("state %d", s)
}

// way returns what the kernel of the current namespace does with a packet to dst: with a local packet, or with one that arrives
// from src on the device in.
func way(where string, dst, src netip.Addr, in string) []Fact {
	opts := &netlink.RouteGetOptions{}
	if in != "" {
		opts.Iif, opts.SrcAddr = in, src.AsSlice()
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE) // in this thread's namespace
	if err != nil {
		return []Fact{{Where: where, What: "route", Text: err.Error(), Problem: true}}
	}
	defer h.Close()
	routes, err := h.RouteGetWithOptions(dst.AsSlice(), opts)
	if err != nil || len(routes) == 0 {
		text := noRoute(err)
		if family := ipaddr.Family(dst); in != "" && slices.Contains(notForwarding(), family) {
			text = fmt.Sprintf("the node does not forward %s packets (%s is 0)", family, forwardingOf(family))
		}
		return []Fact{{Where: where, What: "route", Text: fmt.Sprintf("to %s: %s", dst, text), Problem: true}}
	}
	r := routes[0]
	f := Fact{Where: where, What: "route", Text: fmt.Sprintf("to %s: %s", dst, routeType(r.Type))}
	next := dst
	if gw, ok := netip.AddrFromSlice(r.Gw); ok {
		next = gw.Unmap()
		f.Text += " via " + next.String()
	}
	f.Problem = r.Type != unix.RTN_UNICAST && r.Type != unix.RTN_LOCAL && r.Type != 0
	link, err := h.LinkByIndex(r.LinkIndex)
	if err != nil {
		return []Fact{f}
	}
	f.Text += " dev " + link.Attrs().Name
	if r.Type == unix.RTN_LOCAL || f.Problem {
		return []Fact{f}
	}
	facts := []Fact{f}
	if link.Attrs().Flags&net.FlagUp == 0 || link.Attrs().OperState == netlink.OperDown {
		facts = append(facts, Fact{Where: where, What: "link", Text: link.Attrs().Name + " is down", Problem: true})
	}
	return append(facts, neighbourFact(h, where, link, next)...)
}

func neighbourFact(h *netlink.Handle, where string, link netlink.Link, next netip.Addr) []Fact {
	family := unix.AF_INET
	if next.Is6() {
		family = unix.AF_INET6
	}
	list, err := whole(func() ([]netlink.Neigh, error) { return h.NeighList(link.Attrs().Index, family) })
	if err != nil {
		return nil
	}
	for _, n := range list {
		if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == next {
			state := neighbourState(n.State)
			return []Fact{{
				Where: where, What: "neighbour", Problem: state == "failed" || state == "incomplete",
				Text: fmt.Sprintf("%s dev %s is %s, %s", next, link.Attrs().Name, n.HardwareAddr, state),
			}}
		}
	}
	return []Fact{{Where: where, What: "neighbour", Text: fmt.Sprintf("%s dev %s is not known", next, link.Attrs().Name)}}
}

// noRoute describes the kernel's errors of a route lookup.
func noRoute(err error) string {
	switch {
	case err == nil, errors.Is(err, unix.ENETUNREACH):
		return "no route"
	case errors.Is(err, unix.EINVAL):
		return "a blackhole route, or a source address that the node does not accept at this interface"
	case errors.Is(err, unix.EHOSTUNREACH):
		return "an unreachable route"
	case errors.Is(err, unix.EACCES):
		return "a prohibit route"
	case errors.Is(err, unix.EXDEV):
		return "the source address has no valid route back through the interface at which the packet arrived (reverse path filter)"
	}
	return err.Error()
}

// deviceDrops returns the drops that each device of the agent's namespace has counted.
func deviceDrops() map[string]uint64 {
	out := map[string]uint64{}
	links, err := whole(netlink.LinkList)
	if err != nil {
		return out
	}
	for _, l := range links {
		if s := l.Attrs().Statistics; s != nil {
			out[l.Attrs().Name] = s.RxDropped + s.TxDropped
		}
	}
	return out
}

// endWithAgent lets the kernel kill a process when the thread that starts it ends, and so when the agent is killed.
func endWithAgent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
