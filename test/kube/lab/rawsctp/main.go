// Command rawsctp replaces agnhost in the lab's image. If the kernel has no SCTP sockets it implements agnhost's SCTP itself, with raw
// packets: a server answers the first packet of an association, INIT, with INIT-ACK, and a client is connected when it receives that
// answer. For all other functions it executes the real agnhost.
package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	agnhost    = "/agnhost.real"
	serverPort = "SERVE_SCTP_PORT_"

	protocol = 132
	header   = 12
	chunkLen = 20
	typeInit = 1
	typeAck  = 2
)

func main() {
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 0 || hasSockets():
		err = become(args)
	case args[0] == "porter":
		err = serve(args)
	case args[0] == "connect":
		err = connect(args)
	default:
		err = become(args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hasSockets() bool {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, protocol)
	if err != nil {
		return !errors.Is(err, syscall.EPROTONOSUPPORT)
	}
	_ = syscall.Close(fd)
	return true
}

func become(args []string) error {
	return syscall.Exec(agnhost, append([]string{agnhost}, args...), os.Environ())
}

// serve answers on the SCTP ports that the environment names. A real agnhost beside this process serves the other ports of the
// environment.
func serve(args []string) error {
	ports := map[uint16]bool{}
	var env []string
	others := false
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if after, ok := strings.CutPrefix(name, serverPort); ok {
			port, err := strconv.ParseUint(after, 10, 16)
			if err != nil {
				return err
			}
			ports[uint16(port)] = true
			continue
		}
		others = others || strings.HasPrefix(name, "SERVE_")
		env = append(env, e)
	}
	if len(ports) == 0 {
		return become(args)
	}
	if others {
		cmd := exec.Command(agnhost, args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = env, os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
	}
	failed := make(chan error)
	for _, network := range []string{"ip4:132", "ip6:132"} {
		conn, err := net.ListenPacket(network, "")
		if err != nil {
			return err
		}
		go func() { failed <- answer(conn, ports) }() //lint:allow go: ends with the process
	}
	return <-failed
}

func answer(conn net.PacketConn, ports map[uint16]bool) error {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return err
		}
		p, ok := parse(buf[:n])
		if !ok || p.kind != typeInit || !ports[p.to] {
			continue
		}
		ack := packet{from: p.to, to: p.from, verification: p.initiate, kind: typeAck, initiate: random()}
		if _, err := conn.WriteTo(ack.bytes(), from); err != nil {
			fmt.Fprintln(os.Stderr, "answer:", err)
		}
	}
}

// connect implements `agnhost connect`: it has the same arguments and the same errors (TIMEOUT, DNS, OTHER).
func connect(args []string) error {
	timeout, dest, sctp := 5*time.Second, "", false // agnhost waits without limit by default
	for _, a := range args[1:] {
		switch name, value, _ := strings.Cut(a, "="); {
		case name == "--protocol":
			sctp = value == "sctp"
		case name == "--timeout":
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			timeout = d
		case !strings.HasPrefix(a, "-"):
			dest = a
		}
	}
	if !sctp {
		return become(args)
	}
	host, service, err := net.SplitHostPort(dest)
	if err != nil {
		return fmt.Errorf("DNS: %w", err)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return fmt.Errorf("DNS: %w", err)
	}
	to, err := net.ResolveIPAddr("ip", host)
	if err != nil {
		return fmt.Errorf("DNS: %w", err)
	}
	if err := handshake(to, uint16(port), time.Now().Add(timeout)); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("TIMEOUT")
		}
		return fmt.Errorf("OTHER: %w", err)
	}
	return nil
}

// handshake sends INIT, and repeats it every second, until INIT-ACK arrives from the server.
func handshake(to *net.IPAddr, port uint16, end time.Time) error {
	network := "ip6:132"
	if to.IP.To4() != nil {
		network = "ip4:132"
	}
	conn, err := net.ListenPacket(network, "")
	if err != nil {
		return err
	}
	defer conn.Close()
	first := packet{from: uint16(random()) | 0x8000, to: port, kind: typeInit, initiate: random()}
	buf := make([]byte, 1<<16)
	for {
		if _, err := conn.WriteTo(first.bytes(), to); err != nil {
			return err
		}
		again := time.Now().Add(time.Second)
		if again.After(end) {
			again = end
		}
		_ = conn.SetReadDeadline(again) // an error also shows in the read
		for {
			n, _, err := conn.ReadFrom(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(end) {
				break
			}
			if err != nil {
				return err
			}
			if p, ok := parse(buf[:n]); ok && p.kind == typeAck && p.from == port && p.to == first.from && p.verification == first.initiate {
				return nil
			}
		}
	}
}

// packet is an INIT or an INIT-ACK.
type packet struct {
	from, to     uint16
	verification uint32
	kind         byte
	initiate     uint32
}

func (p packet) bytes() []byte {
	b := make([]byte, header+chunkLen)
	binary.BigEndian.PutUint16(b, p.from)
	binary.BigEndian.PutUint16(b[2:], p.to)
	binary.BigEndian.PutUint32(b[4:], p.verification)
	c := b[header:]
	c[0] = p.kind
	binary.BigEndian.PutUint32(c[4:], p.initiate)
	binary.BigEndian.PutUint32(c[8:], 1<<16) // window
	binary.BigEndian.PutUint16(c[12:], 1)    // streams out and in
	binary.BigEndian.PutUint16(c[14:], 1)
	binary.BigEndian.PutUint32(c[16:], p.initiate)
	if p.kind == typeAck { // the cookie: a parameter of type 7
		b = append(b, 0, 7, 0, 8, 'c', 'o', 'o', 'k')
	}
	binary.BigEndian.PutUint16(b[header+2:], uint16(len(b)-header))
	binary.LittleEndian.PutUint32(b[8:], checksum(b))
	return b
}

func parse(b []byte) (packet, bool) {
	if len(b) < header+chunkLen || binary.LittleEndian.Uint32(b[8:]) != checksum(b) {
		return packet{}, false
	}
	return packet{
		from: binary.BigEndian.Uint16(b), to: binary.BigEndian.Uint16(b[2:]), verification: binary.BigEndian.Uint32(b[4:]),
		kind: b[header], initiate: binary.BigEndian.Uint32(b[header+4:]),
	}, true
}

// checksum returns the checksum of the packet, computed with zeros in the checksum field.
func checksum(b []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, b[:8])
	sum = crc32.Update(sum, table, make([]byte, 4))
	return crc32.Update(sum, table, b[header:])
}

func random() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint32(b[:]) | 1
}
