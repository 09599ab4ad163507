package cnat_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestFaults shows what is wrong with VPP 25.10's cnat and loses connections; docs/adr/0010 tells of it. When VPP is mended,
// rejoice.
func TestFaults(t *testing.T) {
	w := newWorld(t, 2)
	a, b, c, outside := w.pod(0, "a", 1), w.pod(1, "b", 1), w.pod(0, "c", 1), w.outside()
	w.service("one", vip(0x10), nil, a)
	w.service("two", vip(0x11), nil, a)
	w.service("np", vip(0x12), nodePort(30080, false), b)
	w.reaches(c, "tcp", at(vip(0x10), 80), "a")
	w.reaches(c, "tcp", at(vip(0x11), 80), "a")
	w.reaches(outside, "tcp", at(node1, 30080), "b")
	t.Run("client's port reused", func(t *testing.T) { w.portReused(t, c, a) })
	t.Run("source ports given back", func(t *testing.T) { w.portsGivenBack(t, outside) })
}

// portReused: cnat knows an answer by the client's address and port and the backend's. So a client cannot use a port for a
// service, and shortly after for another service, or directly, if the backend is the same.
func (w *world) portReused(t *testing.T, client, server *machine) {
	for n, s := range []struct {
		then string
		lost bool
	}{
		{at(vip(0x10), 80), false}, // the same service: no fault
		{at(vip(0x11), 80), true},
		{at(server.ip.String(), servePort), true},
	} {
		port := 21000 + n // not one that the kernel chooses
		first, err := client.dialFrom(port, at(vip(0x10), 80))
		if err != nil {
			t.Fatal(err)
		}
		_ = first.Close()
		if lost, err := client.loses(port, s.then); err != nil || lost != s.lost {
			t.Errorf("port %d for a service, then for %s: lost: %t, %v; known is: lost: %t", port, s.then, lost, err, s.lost)
		}
		if lost, err := client.loses(port+100, s.then); err != nil || lost {
			t.Errorf("another port for %s: lost: %t, %v", s.then, lost, err)
		}
	}
}

// portsGivenBack: source ports are given back with their bytes swapped. The end of the connection with port 0xc0c1 frees
// 0xc1c0, which is in use; it is given to the next connection, and that gets no answer.
func (w *world) portsGivenBack(t *testing.T, client *machine) {
	if testing.Short() {
		t.Skip("waits until VPP forgets a connection")
	}
	const ended, freed = 0xc0c1, 0xc1c0
	held := map[uint16]net.Conn{}
	defer func() {
		for _, conn := range held {
			_ = conn.Close()
		}
	}()
	hold := func() error {
		conn, err := client.dialFrom(0, at(node1, 30080))
		if err != nil {
			return err
		}
		port, err := seenPort(conn)
		held[port] = conn
		return err
	}
	for held[freed] == nil && len(held) < 1000 {
		if err := hold(); err != nil {
			t.Fatalf("with %d connections: %v", len(held), err)
		}
	}
	if held[ended] == nil || held[freed] == nil {
		t.Fatalf("%d connections, and none from the ports that are looked at", len(held))
	}
	_ = held[ended].Close()
	delete(held, ended)
	// VPP forgets the connection after five seconds.
	for limit := time.Now().Add(15 * time.Second); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		switch err := hold(); {
		case isTimeout(err):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
	t.Errorf("%d connections, and none was lost", len(held))
}

// dialFrom connects from a port (0: any). The connection's end leaves nothing that would keep the port from being used again.
func (m *machine) dialFrom(port int, to string) (conn net.Conn, err error) {
	return conn, m.Do(func() error {
		d := net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: m.ip.AsSlice(), Port: port}}
		if conn, err = d.Dial("tcp", to); err != nil {
			return err
		}
		return conn.(*net.TCPConn).SetLinger(0)
	})
}

// loses says whether a connection gets no answer at all.
func (m *machine) loses(port int, to string) (bool, error) {
	conn, err := m.dialFrom(port, to)
	if isTimeout(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, conn.Close()
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// seenPort is the client's port as the server sees it.
func seenPort(conn net.Conn) (uint16, error) {
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return 0, err
	}
	var name, client string
	if _, err := fmt.Fscan(conn, &name, &client); err != nil {
		return 0, err
	}
	at, err := netip.ParseAddrPort(client)
	return at.Port(), err
}
