package connectivity

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/nsdo"
	"contiv.dev/vswitch/internal/rest"
)

// The transfer protocol: the client sends the number of bytes (8 bytes), then the bytes; the server answers with the number of bytes that it
// has received (8 bytes) and their checksum (CRC-32, 4 bytes).

const (
	maxBytes     = 1 << 30
	transferTime = 30 * time.Second
	chunk        = 64 << 10
)

// servers are the servers of one pod.
type servers struct {
	tcp net.Listener
	udp net.PacketConn
}

// serve starts the servers in the namespace.
func serve(jobs *lifecycle.Group, ns *nsdo.Namespace, name string) (*servers, error) {
	s := &servers{}
	address := fmt.Sprintf(":%d", Port)
	err := ns.Do(func() (err error) {
		if s.tcp, err = net.Listen("tcp", address); err != nil {
			return err
		}
		s.udp, err = net.ListenPacket("udp", address)
		return err
	})
	if err != nil {
		s.close()
		return nil, err
	}
	jobs.Go(name+" TCP", func(context.Context) error { s.serveTCP(jobs, name); return nil })
	jobs.Go(name+" UDP", func(context.Context) error { s.serveUDP(); return nil })
	return s, nil
}

func (s *servers) close() {
	if s == nil {
		return
	}
	if s.tcp != nil {
		_ = s.tcp.Close()
	}
	if s.udp != nil {
		_ = s.udp.Close()
	}
}

func (s *servers) serveTCP(jobs *lifecycle.Group, name string) {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return // the listener is closed
		}
		jobs.Go(name+" connection", func(context.Context) error {
			defer c.Close()
			_ = receive(c) // the client reports a failure
			return nil
		})
	}
}

// receive answers one transfer.
func receive(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(transferTime)); err != nil {
		return err
	}
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	sum := crc32.NewIEEE()
	n, err := io.CopyN(sum, c, int64(min(binary.BigEndian.Uint64(head[:]), maxBytes)))
	if err != nil {
		return err
	}
	var tail [12]byte
	binary.BigEndian.PutUint64(tail[:], uint64(n))
	binary.BigEndian.PutUint32(tail[8:], sum.Sum32())
	_, err = c.Write(tail[:])
	return err
}

// serveUDP returns each datagram to its sender.
func (s *servers) serveUDP() {
	buf := make([]byte, chunk)
	for {
		n, from, err := s.udp.ReadFrom(buf)
		if err != nil {
			return // the socket is closed
		}
		_, _ = s.udp.WriteTo(buf[:n], from) // the client repeats a lost datagram
	}
}

// TransferRequest is the body of POST TransferPath.
type TransferRequest struct {
	Name  string     `json:"name"` // name of the pod that sends
	To    netip.Addr `json:"to"`
	Port  uint16     `json:"port"`
	Bytes int64      `json:"bytes"`
}

// TransferResult is the answer to a TransferRequest: the bytes have arrived, unchanged.
type TransferResult struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// serveTransfer: POST /contiv/v1/testpods/transfer
func (s *Service) serveTransfer(w http.ResponseWriter, r *http.Request) {
	var req TransferRequest
	if !rest.ReadJSON(w, r, maxBody, &req) {
		return
	}
	if !req.To.IsValid() || req.Port == 0 || req.Bytes < 1 || req.Bytes > maxBytes {
		rest.WriteError(w, http.StatusBadRequest, fmt.Errorf("to, port and bytes (1 to %d) are needed", maxBytes))
		return
	}
	c, err := s.dial(req.Name, "tcp", netip.AddrPortFrom(req.To, req.Port))
	if err != nil {
		rest.WriteError(w, http.StatusBadGateway, err)
		return
	}
	defer c.Close()
	begun := time.Now()
	if err := send(c, req.Bytes); err != nil {
		rest.WriteError(w, http.StatusBadGateway, fmt.Errorf("transfer from %s to %s: %w", req.Name, req.To, err))
		return
	}
	rest.WriteJSON(w, http.StatusOK, TransferResult{Bytes: req.Bytes, Seconds: time.Since(begun).Seconds()})
}

// dial connects from inside a pod.
func (s *Service) dial(name, network string, to netip.AddrPort) (c net.Conn, err error) {
	ns, err := s.namespaceOf(name)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	err = ns.Do(func() (err error) {
		c, err = net.DialTimeout(network, to.String(), 5*time.Second)
		return err
	})
	return c, err
}

// send sends bytes and compares the server's count and checksum.
func send(c net.Conn, total int64) error {
	if err := c.SetDeadline(time.Now().Add(transferTime)); err != nil {
		return err
	}
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], uint64(total))
	if _, err := c.Write(head[:]); err != nil {
		return err
	}
	sum := crc32.NewIEEE()
	block := make([]byte, chunk)
	for i := range block {
		block[i] = byte(i * 31)
	}
	for left, n := total, uint64(0); left > 0; n++ {
		binary.BigEndian.PutUint64(block, n) // so that no two blocks are the same
		part := block[:min(left, chunk)]
		if _, err := c.Write(part); err != nil {
			return err
		}
		_, _ = sum.Write(part) // never fails
		left -= int64(len(part))
	}
	var want, tail [12]byte
	binary.BigEndian.PutUint64(want[:], uint64(total))
	binary.BigEndian.PutUint32(want[8:], sum.Sum32())
	if _, err := io.ReadFull(c, tail[:]); err != nil {
		return err
	}
	if !bytes.Equal(tail[:], want[:]) {
		return errors.New("the receiver got other bytes than were sent")
	}
	return nil
}
