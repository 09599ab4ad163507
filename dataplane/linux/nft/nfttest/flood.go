package nfttest

import (
	"encoding/binary"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// Flooded is a node whose only service is flooded with new connections, which end at the node. It counts packets that were translated and
// packets that were not.
type Flooded struct {
	Node   *nettest.NS
	client *nettest.NS
	flood  sync.WaitGroup
	stop   chan struct{}
	done   chan error
}

// VIP is the address of the service.
const VIP = "10.96.0.1"

// NewFlooded creates the node, and a client connected to it.
func NewFlooded(t *testing.T) *Flooded {
	t.Helper()
	f := &Flooded{Node: nettest.New(t), client: nettest.New(t), stop: make(chan struct{}), done: make(chan error, 1)}
	f.Node.IP("link add veth0 address 02:00:00:00:00:01 type veth peer name eth0 netns " + f.client.Name)
	for _, args := range []string{"addr add 10.1.9.1/24 dev veth0", "link set veth0 up", "route add default via 10.1.9.2"} {
		f.Node.IP(args)
	}
	f.client.IP("link set eth0 up")
	f.Node.Run("sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.veth0.rp_filter=0 " +
		"net.netfilter.nf_conntrack_checksum=0")
	for _, rule := range []string{"table ip watch", "chain ip watch in { type filter hook prerouting priority -50 ; }",
		"rule ip watch in ip daddr " + VIP + " counter drop", "rule ip watch in ip daddr 10.1.1.0/24 counter drop"} {
		f.Node.Run("nft add " + rule)
	}
	return f
}

// Begin starts the flood. The service must exist.
func (f *Flooded) Begin(t *testing.T) {
	t.Cleanup(func() { f.End(t) })
	f.flood.Go(func() { f.done <- f.client.Do(f.send) })
}

// End stops the flood; it may be called twice.
func (f *Flooded) End(t *testing.T) {
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

// send sends the first segments of TCP connections, from changing ports and addresses.
func (f *Flooded) send() error {
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
	copy(ip[16:], netip.MustParseAddr(VIP).AsSlice())
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

// Counts returns how many packets were not translated and how many were.
func (f *Flooded) Counts(t *testing.T) (missed, translated int) {
	t.Helper()
	found := regexp.MustCompile(`packets (\d+)`).FindAllStringSubmatch(f.Node.Run("nft list chain ip watch in"), -1)
	if len(found) != 2 {
		t.Fatalf("%d counters instead of 2", len(found))
	}
	missed, _ = strconv.Atoi(found[0][1])
	translated, _ = strconv.Atoi(found[1][1])
	return missed, translated
}
