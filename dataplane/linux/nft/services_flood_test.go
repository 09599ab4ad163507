package nft

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/rtnl/nettest"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// flooded is a node whose only service is flooded with new connections, which end in the node: those that were translated and
// those that were not are counted.
type flooded struct {
	node, client *nettest.NS
	stop         chan struct{}
	done         chan error
}

const floodedVIP = "10.96.0.1"

func newFlooded(t *testing.T) *flooded {
	t.Helper()
	f := &flooded{nettest.New(t), nettest.New(t), make(chan struct{}), make(chan error, 1)}
	f.node.IP("link add veth0 address 02:00:00:00:00:01 type veth peer name eth0 netns " + f.client.Name)
	for _, args := range []string{"addr add 10.1.9.1/24 dev veth0", "link set veth0 up", "route add default via 10.1.9.2"} {
		f.node.IP(args)
	}
	f.client.IP("link set eth0 up")
	f.node.Run("sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.veth0.rp_filter=0 " +
		"net.netfilter.nf_conntrack_checksum=0")
	for _, rule := range []string{"table ip watch", "chain ip watch in { type filter hook prerouting priority -50 ; }",
		"rule ip watch in ip daddr " + floodedVIP + " counter drop", "rule ip watch in ip daddr 10.1.1.0/24 counter drop"} {
		f.node.Run("nft add " + rule)
	}
	return f
}

// begin begins the flood. The service is there.
func (f *flooded) begin(t *testing.T) {
	t.Cleanup(func() { f.end(t) })
	go func() { f.done <- f.client.Do(f.send) }()
}

// end ends the flood; it may be called twice.
func (f *flooded) end(t *testing.T) {
	t.Helper()
	select {
	case <-f.stop:
		return
	default:
		close(f.stop)
	}
	if err := <-f.done; err != nil {
		t.Errorf("flood: %v", err)
	}
}

// send sends what begins a TCP connection, from one port and address after the other.
func (f *flooded) send() error {
	link, err := net.InterfaceByName("eth0")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	p := make([]byte, 14+20+20)
	copy(p, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0})
	ip, tcp := p[14:34], p[34:]
	ip[0], ip[3], ip[8], ip[9] = 0x45, 40, 64, unix.IPPROTO_TCP
	copy(ip[16:], netip.MustParseAddr(floodedVIP).AsSlice())
	binary.BigEndian.PutUint16(tcp[2:], 80)
	tcp[12], tcp[13] = 5<<4, 2 // SYN
	to := &unix.SockaddrLinklayer{Ifindex: link.Index, Halen: 6}
	for i := uint32(0); ; i++ {
		select {
		case <-f.stop:
			return nil
		default:
		}
		copy(ip[12:], []byte{10, 1, 10, byte(i >> 15)})
		binary.BigEndian.PutUint16(tcp, uint16(1024+i&0x7fff))
		binary.BigEndian.PutUint16(ip[10:], 0)
		binary.BigEndian.PutUint16(ip[10:], checksum(ip))
		if err := unix.Sendto(fd, p, 0, to); err != nil && err != unix.ENOBUFS {
			return err
		}
	}
}

func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// counts are how many packets were not translated and how many were.
func (f *flooded) counts(t *testing.T) (missed, translated int) {
	t.Helper()
	found := regexp.MustCompile(`packets (\d+)`).FindAllStringSubmatch(f.node.Run("nft list chain ip watch in"), -1)
	if len(found) != 2 {
		t.Fatalf("%d counters instead of 2", len(found))
	}
	missed, _ = strconv.Atoi(found[0][1])
	translated, _ = strconv.Atoi(found[1][1])
	return missed, translated
}

// backendsOf are those with the numbers that a text has: "1-3 7".
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

// TestServicesChangeUnderFlood: however the backends of a service change, each new connection gets one.
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
	f := newFlooded(t)
	s, err := OpenServices(Options{NS: f.node.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.SetPods(table.IPv4, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")})
	var versions []*balance.Service
	for i, set := range sets {
		svc := svcOf(t, "a", floodedVIP, 0, backendsOf(set)...)
		if groups && i%2 == 1 {
			svc.Ports[0].Frontends[0].Inside.ID ^= 1 << 40
		}
		versions = append(versions, svc)
	}
	s.Set(versions[0])
	s.mustApply(t)
	f.begin(t)
	const changes, packets = 2500, 20000
	translated, n := 0, 0
	for end := time.Now().Add(30 * time.Second); n < changes || translated < packets; n++ {
		s.Set(versions[n%len(versions)])
		if res := s.Apply(context.Background()); res.Err != nil {
			t.Fatal(res.Err)
		}
		if n%500 == 499 {
			if _, translated = f.counts(t); time.Now().After(end) {
				t.Fatalf("only %d changes and %d connections in 30 s", n, translated)
			}
		}
	}
	f.end(t)
	if missed, translated := f.counts(t); missed > 0 {
		t.Errorf("%d of %d connections got no backend in %d changes", missed, missed+translated, n)
	}
}
