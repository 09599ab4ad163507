package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/test/testbed/whoami"
)

const (
	reusedPort  = 6000 // first of the reused ports
	reuseDenies = `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: oth}}}]}]}`
	reuseAllows = `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}]}]}`
)

// reused is a connection whose addresses and ports are reused.
type reused struct {
	w             *world
	from, network string
	own           net.Addr
	to            netip.AddrPort
	conn          *whoami.Conn // the open connection, if any
}

// query sends a request to the server; if there is no connection, it makes one with the same addresses and ports.
func (r *reused) query() (err error) {
	if r.conn == nil {
		if r.conn, err = whoami.DialFrom(r.w.ctx, r.w.spaces[r.from], r.network, r.own, r.to, timeout); err != nil {
			return err
		}
	}
	_, err = r.conn.Query()
	return err
}

// end closes the connection without a packet, if the policy denies it.
func (r *reused) end() {
	if r.conn != nil {
		_ = r.conn.Close()
	}
	r.conn = nil
}

func (r *reused) String() string {
	return fmt.Sprintf("%s of %s from %s to %s", r.network, r.from, r.own, r.to)
}

// reusable returns connections of TCP and UDP in both families, direct and by a service, on one node and between nodes.
func (w *world) reusable(vips []netip.Addr) (all []*reused) {
	w.t.Helper()
	for _, from := range []string{"cli1", "cli2"} {
		for f, own := range w.addrs[from] {
			for _, to := range []netip.AddrPort{netip.AddrPortFrom(w.addrs["web1"][f], httpPort), netip.AddrPortFrom(vips[f], 80)} {
				port := reusedPort + len(all)
				all = append(all,
					&reused{w: w, from: from, network: "tcp", to: to, own: &net.TCPAddr{IP: own.AsSlice(), Port: port}},
					&reused{w: w, from: from, network: "udp", to: to, own: &net.UDPAddr{IP: own.AsSlice(), Port: port}})
			}
		}
	}
	w.t.Cleanup(func() {
		for _, r := range all {
			r.end()
		}
	})
	return all
}

// arrivals counts the packets from the reused ports, until no more arrive.
func arrivals(socket, ports int) (n int) {
	for buf := make([]byte, 2000); ; {
		size, _, err := unix.Recvfrom(socket, buf, 0)
		if err != nil {
			return n
		}
		header, protocol := 20, buf[9]
		if buf[0]>>4 == 6 {
			header, protocol = 40, buf[6]
		}
		if size < header+4 || protocol != unix.IPPROTO_TCP && protocol != unix.IPPROTO_UDP {
			continue
		}
		if port := int(binary.BigEndian.Uint16(buf[header:])); port >= reusedPort && port < reusedPort+ports {
			n++
		}
	}
}

// TestReusedPorts opens connections that a policy denies again with the same addresses and ports, some while the old one is open and some
// after its end. No state of the old connections lets the new ones pass: no packet arrives. When they are allowed again, they work.
func TestReusedPorts(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		all := w.reusable(w.service())
		sockets := []int{w.packetSocket("web1", w.addrs["web1"][0]), w.packetSocket("web1", w.addrs["web1"][1])}
		for round := range 2 {
			w.policy("web", reuseAllows)
			w.expect("+ cli1 web1 tcp 8080\n+ cli2 web1 udp 8080\n- oth1 web1 tcp 8080")
			for _, r := range all {
				w.within(r.String(), time.Minute, func() error {
					err := r.query()
					if err != nil {
						r.end()
					}
					return err
				})
				if round == 1 {
					r.end() // before the policy changes
				}
			}
			w.policy("web", reuseDenies)
			w.expect("- cli1 web1 tcp 8080\n- cli2 web1 udp 8080\n+ oth1 web1 tcp 8080")
			for _, r := range all {
				if r.conn != nil {
					w.within(r.String()+" is cut", 20*time.Second, func() error {
						if r.query() == nil {
							return errors.New("it goes on")
						}
						return nil
					})
				}
			}
			for _, s := range sockets { // packets that the previous policies have allowed
				arrivals(s, len(all))
			}
			for _, r := range all {
				r.end()
				if err := r.query(); err == nil {
					t.Errorf("%s is used again and answered", r)
				}
				r.end()
			}
			for i, s := range sockets {
				if n := arrivals(s, len(all)); n > 0 {
					t.Errorf("%d packets arrived at %s from ports that are used again", n, w.addrs["web1"][i])
				}
			}
		}
		w.policy("web", "")
		for _, r := range all {
			w.within(r.String()+" is allowed again", time.Minute, func() error {
				err := r.query()
				if err != nil {
					r.end()
				}
				return err
			})
		}
	})
}
