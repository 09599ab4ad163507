package intdataplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
)

// Services are tested with processes that use TCP and UDP in pods, on the node and outside, on both backends.

const podPort = 8080

// serve makes pod i answer at a port, in both protocols and families, with its name and the address that it sees. At ports other than
// podPort, its name includes the port.
func (n *node) serve(i int, port uint16) {
	n.t.Helper()
	name := fmt.Sprintf("pod%d", i)
	if port != podPort {
		name = fmt.Sprintf("%s:%d", name, port)
	}
	bothFamilies(func(f table.Family) {
		at := netip.AddrPortFrom(n.addr(i, f), port)
		if err := n.Pods[i-1].NS.Do(func() error {
			tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
			if err != nil {
				return err
			}
			udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
			if err != nil {
				return err
			}
			n.t.Cleanup(func() { tcp.Close(); udp.Close() })
			n.serving.Go(func() { serveTCP(tcp, name) })
			n.serving.Go(func() { serveUDP(udp, name) })
			return nil
		}); err != nil {
			n.t.Fatalf("serve in %s: %v", name, err)
		}
	})
}

func serveTCP(l *net.TCPListener, name string) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return
		}
		echoTCP(c, name)
	}
}

// echoTCP sends its name and the client's address, and stays until the client disconnects.
func echoTCP(c *net.TCPConn, name string) {
	fmt.Fprintf(c, "%s %s\n", name, c.RemoteAddr())
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		c.Close()
		return
	}
	_ = c.CloseWrite()
	c.Close()
}

func serveUDP(c *net.UDPConn, name string) {
	buf := make([]byte, 100)
	for {
		_, from, err := c.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = c.WriteToUDPAddrPort(fmt.Appendf(nil, "%s %s\n", name, from), from)
		}
	}
}

// answer is the name of the server that answered, and the address it saw.
type answer struct {
	by   string
	seen netip.Addr
}

func parseAnswer(text string) (answer, error) {
	by, from, ok := strings.Cut(strings.TrimSpace(text), " ")
	at, err := netip.ParseAddrPort(from)
	if !ok || err != nil {
		return answer{}, fmt.Errorf("answer %q", text)
	}
	return answer{by, at.Addr().Unmap()}, nil
}

// Results of a client that gets no answer.
var (
	errRefused = errors.New("refused")
	errSilence = errors.New("silence")
)

// How long a client waits for an answer, and for silence, which is shorter.
const (
	maxWait = 2 * time.Second
	silence = 250 * time.Millisecond
)

// query connects and reads the answer. source is optional.
func query(from *tabletest.Node, network string, to netip.AddrPort, source ...netip.Addr) (answer, error) {
	return queryWithin(maxWait, from, network, to, source...)
}

func queryWithin(wait time.Duration, from *tabletest.Node, network string, to netip.AddrPort,
	source ...netip.Addr) (answer, error) {
	conn, err := dialWithin(wait, from, network, to, source...)
	if err != nil {
		return answer{}, outcome(err)
	}
	defer conn.Close()
	return queryOverWithin(wait, conn, network)
}

func dial(from *tabletest.Node, network string, to netip.AddrPort) (net.Conn, error) {
	return dialWithin(maxWait, from, network, to)
}

func dialWithin(wait time.Duration, from *tabletest.Node, network string, to netip.AddrPort,
	source ...netip.Addr) (conn net.Conn, err error) {
	d := net.Dialer{Timeout: wait}
	for _, a := range source {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
		if network == "udp" {
			d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
		}
	}
	err = from.NS.Do(func() (err error) {
		conn, err = d.DialContext(context.Background(), network, to.String())
		return err
	})
	return conn, err
}

func queryOver(conn net.Conn, network string) (answer, error) {
	return queryOverWithin(silence, conn, network)
}

func queryOverWithin(wait time.Duration, conn net.Conn, network string) (answer, error) {
	if network == "udp" {
		if _, err := conn.Write([]byte("hello")); err != nil {
			return answer{}, outcome(err)
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return answer{}, err
	}
	buf := make([]byte, 100)
	k, err := conn.Read(buf)
	if err != nil {
		return answer{}, outcome(err)
	}
	return parseAnswer(string(buf[:k]))
}

func outcome(err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPERM): // the latter for UDP of the node itself
		return errRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errSilence
	}
	return err
}

// want is the expected result of a client.
type want struct {
	by   []string     // any of these answers; with all, each of them occurs eventually
	all  bool         //
	seen []netip.Addr // one of these
	err  error
}

// expect connects with both protocols, and compares the results.
func (n *node) expect(why string, from *tabletest.Node, to netip.AddrPort, w want, source ...netip.Addr) {
	n.t.Helper()
	for _, network := range []string{"tcp", "udp"} {
		n.expectBy(network, why, from, to, w, source...)
	}
}

func (n *node) expectBy(network, why string, from *tabletest.Node, to netip.AddrPort, w want, source ...netip.Addr) {
	n.t.Helper()
	met, wait := map[string]bool{}, maxWait
	if w.err == errSilence {
		wait = silence
	}
	for range 60 {
		got, err := queryWithin(wait, from, network, to, source...)
		if !errors.Is(err, w.err) || err != nil && w.err == nil {
			n.t.Errorf("%s: %s to %s: %v, want %v", why, network, to, err, w.err)
			return
		}
		if err != nil {
			return
		}
		met[got.by] = true
		if !slices.Contains(w.by, got.by) || len(w.seen) > 0 && !slices.Contains(w.seen, got.seen) {
			n.t.Errorf("%s: %s to %s: %s answers and sees %s, want one of %s and %s", why, network, to, got.by, got.seen, w.by, w.seen)
			return
		}
		if len(met) == len(w.by) || !w.all {
			return
		}
	}
	n.t.Errorf("%s: %s to %s: only %v of %v have ever answered", why, network, to, met, w.by)
}

// vip returns service address number i of a family.
func vip(f table.Family, i int) netip.Addr {
	if f == table.IPv4 {
		return netip.AddrFrom4([4]byte{10, 96, 0, byte(i)})
	}
	return netip.MustParseAddr(fmt.Sprintf("fd96::%x", i))
}

// serviceMsg builds messages of services.
type serviceMsg struct {
	m *proto.BalancedServiceUpdate
}

func newLB(name string) *serviceMsg {
	return &serviceMsg{&proto.BalancedServiceUpdate{Namespace: "default", Name: name}}
}

// port adds a port for TCP and UDP.
func (s *serviceMsg) port(f table.Family, everywhere, here *proto.BalancedGroup, fronts ...*proto.BalancedFrontend) *serviceMsg {
	for name, protocol := range map[string]uint32{"t": 6, "u": 17} {
		s.m.Ports = append(s.m.Ports, &proto.BalancedPort{Name: name, Protocol: protocol, Ipv6: f == table.IPv6,
			Frontends: fronts, Everywhere: everywhere, Here: here})
	}
	slices.SortStableFunc(s.m.Ports, func(a, b *proto.BalancedPort) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func (s *serviceMsg) affinity(seconds uint32) *serviceMsg {
	s.m.AffinitySeconds = seconds
	return s
}

func front(source proto.BalancedFrontend_Source, a netip.Addr, port uint32) *proto.BalancedFrontend {
	return &proto.BalancedFrontend{Address: a.AsSlice(), Port: port, Source: source}
}

// pods returns a group of pods of the test's node.
func (n *node) pods(f table.Family, list ...int) *proto.BalancedGroup {
	g := &proto.BalancedGroup{Ports: []uint32{podPort}}
	for _, i := range list {
		g.Addresses = append(g.Addresses, n.addr(i, f).AsSlice()...)
	}
	g.Own = g.Addresses
	return g
}

func noBackend(v proto.BalancedGroup_Verdict) *proto.BalancedGroup {
	return &proto.BalancedGroup{Verdict: v}
}

// podPools returns the pools of all pods of the test's network.
func podPools() []any {
	return []any{
		&proto.IPAMPoolUpdate{Id: "4", Pool: &proto.IPAMPool{Cidr: "10.65.0.0/16"}},
		&proto.IPAMPoolUpdate{Id: "6", Pool: &proto.IPAMPool{Cidr: "fd00:65::/32"}},
	}
}

// withServices runs a test on both backends, on a node with three open pods that serve.
func withServices(t *testing.T, test func(t *testing.T, n *node)) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		for i := range 3 {
			n.serve(i+1, podPort)
		}
		n.apply(append(podPools(), n.open()...)...)
		n.up("pod1", "pod2", "pod3")
		test(t, n)
	})
}
