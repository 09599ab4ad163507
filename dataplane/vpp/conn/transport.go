package conn

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
)

const (
	registerID   = 15 // number of sockclnt_create, the only number that is fixed
	readBuffer   = 64 << 10
	largestFrame = 64 << 20
)

// transport is one socket to VPP, from the registration to the loss of the connection.
type transport struct {
	sock   *net.UnixConn
	client uint32            // our index at VPP
	ids    map[string]uint16 // message numbers by name_crc
	socket string            // identity of the socket file: new for each start of VPP

	write  sync.Mutex   // held while writing
	lastRx atomic.Int64 // time of the last data from VPP (clock)

	lost sync.Once
	done chan struct{} // closed when the connection is lost
	err  error         // cause; valid after done
}

// clock counts monotonic nanoseconds: cheaper to store and compare than times.
type clock struct{ zero time.Time }

func (c clock) now() int64 { return int64(time.Since(c.zero)) }

// dial connects to the socket at path and registers as a client.
func dial(ctx context.Context, path, client string, timeout time.Duration) (*transport, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	before, err := socketIdentity(path)
	if err != nil {
		return nil, err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	sock, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("connect: %s is not a unix socket", path)
	}
	t := &transport{sock: sock, done: make(chan struct{})}
	unwatch := context.AfterFunc(ctx, func() { sock.SetDeadline(time.Unix(1, 0)) })
	err = t.register(client)
	if !unwatch() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		t.socket, err = socketIdentity(path)
	}
	if err == nil && t.socket != before {
		err = errors.New("VPP was restarted while connecting")
	}
	if err != nil {
		sock.Close()
		if ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, fmt.Errorf("register: %w within %s", ErrNotResponding, timeout)
		}
		return nil, fmt.Errorf("register: %w", err)
	}
	return t, nil
}

// socketIdentity identifies the socket file by inode and modification time. VPP makes a new file at each start.
func socketIdentity(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("VPP's API socket: %w", err)
	}
	return fmt.Sprintf("%d@%d", inodeOf(info), info.ModTime().UnixNano()), nil
}

func (t *transport) register(client string) error {
	frame, err := appendFrame(nil, registerID, 0, 1, &memclnt.SockclntCreate{Name: client})
	if err != nil {
		return err
	}
	if _, err := t.sock.Write(frame); err != nil {
		return err
	}
	var head [frameHeader]byte
	if _, err := io.ReadFull(t.sock, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[8:])
	if size > largestFrame {
		return fmt.Errorf("reply of %d bytes: not VPP's API", size)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(t.sock, data); err != nil {
		return err
	}
	m, err := newMsgType(new(memclnt.SockclntCreateReply)).decode(data)
	if err != nil {
		return err
	}
	reply := m.(*memclnt.SockclntCreateReply)
	if reply.Response != 0 {
		return fmt.Errorf("VPP rejected the connection: %w", api.RetvalToVPPApiError(reply.Response))
	}
	t.client = reply.Index
	t.ids = make(map[string]uint16, len(reply.MessageTable))
	for _, e := range reply.MessageTable {
		t.ids[strings.TrimSuffix(e.Name, "\x13")] = e.Index
	}
	return nil
}

func messageKey(m api.Message) string { return m.GetMessageName() + "_" + m.GetCrcString() }

// number returns the message number of m at this VPP.
func (t *transport) number(m api.Message) (uint16, error) {
	id, ok := t.ids[messageKey(m)]
	if !ok {
		return 0, fmt.Errorf("%w: %s", ErrUnknownMessage, messageKey(m))
	}
	return id, nil
}

// send writes whole frames. After a failure to do so within timeout the stream is unusable, so the connection is
// closed.
func (t *transport) send(frames []byte, timeout time.Duration) error {
	t.write.Lock()
	defer t.write.Unlock()
	return t.sendLocked(frames, timeout)
}

// trySend is send, but returns nil if another goroutine is writing, since that counts as sent: supervision must not
// block behind a writer.
func (t *transport) trySend(frames []byte, timeout time.Duration) error {
	if !t.write.TryLock() {
		return nil
	}
	defer t.write.Unlock()
	return t.sendLocked(frames, timeout)
}

func (t *transport) sendLocked(frames []byte, timeout time.Duration) error {
	err := t.sock.SetWriteDeadline(time.Now().Add(timeout))
	if err == nil {
		_, err = t.sock.Write(frames)
	}
	if err != nil {
		t.fail(fmt.Errorf("write: %w", err))
	}
	return err
}

// fail closes the connection. It may be called from any goroutine.
func (t *transport) fail(err error) {
	t.lost.Do(func() {
		t.err = err
		t.sock.Close()
		close(t.done)
	})
}

// sink receives the messages that arrive at a transport. idle is called before the reader waits for more.
type sink interface {
	message(id uint16, data []byte)
	idle()
}

// read passes every message that arrives to the sink until the connection is lost. data is valid during the call only.
func (t *transport) read(to sink) {
	r := bufio.NewReaderSize(t.sock, readBuffer)
	for {
		if err := t.readFrame(r, to); err != nil {
			to.idle()
			t.fail(fmt.Errorf("read: %w", err))
			return
		}
	}
}

func (t *transport) readFrame(r *bufio.Reader, to sink) error {
	peek := func(n int) ([]byte, error) {
		if r.Buffered() < n {
			to.idle()
		}
		return r.Peek(n)
	}
	head, err := peek(frameHeader)
	if err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head[8:]))
	switch {
	case size < 2 || size > largestFrame:
		return fmt.Errorf("message of %d bytes", size)
	case frameHeader+size <= readBuffer:
		frame, err := peek(frameHeader + size)
		if err != nil {
			return err
		}
		to.message(binary.BigEndian.Uint16(frame[frameHeader:]), frame[frameHeader:])
		_, err = r.Discard(frameHeader + size)
		return err
	}
	to.idle()
	if _, err := r.Discard(frameHeader); err != nil {
		return err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return err
	}
	to.message(binary.BigEndian.Uint16(data), data)
	return nil
}
