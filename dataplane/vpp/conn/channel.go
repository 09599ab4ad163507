package conn

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/sirupsen/logrus"
	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/core"
)

// Channel is govpp's request channel, for code outside the agent that sends its own requests.
type Channel = api.Channel

// channels is a second connection, managed by govpp, for Channels. It exists only on request.
type channels struct {
	mu   sync.Mutex
	core *core.Connection // guarded by mu
	raw  *rawAdapter      // guarded by mu
}

// NewAPIChannel returns a govpp channel to VPP with default buffers. Its requests fail when VPP goes away: then create a
// new channel.
func (c *Conn) NewAPIChannel() (Channel, error) {
	return c.NewAPIChannelBuffered(core.RequestChanBufSize, core.ReplyChanBufSize)
}

// NewAPIChannelBuffered is NewAPIChannel with the given buffer sizes.
func (c *Conn) NewAPIChannelBuffered(requests, replies int) (Channel, error) {
	if err := c.session.Load().err(); err != nil {
		return nil, err
	}
	k := &c.channels
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.core != nil && k.raw.lost() {
		k.core.Disconnect()
		k.core = nil
	}
	if k.core == nil {
		quiet()
		raw := &rawAdapter{conn: c}
		connection, err := core.Connect(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
		k.core, k.raw = connection, raw
	}
	ch, err := k.core.NewAPIChannelBuffered(requests, replies)
	if err != nil {
		return nil, fmt.Errorf("API channel: %w", err)
	}
	ch.SetReplyTimeout(c.cfg.RequestTimeout) // govpp waits forever by default
	return ch, nil
}

func (k *channels) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.core != nil {
		k.core.Disconnect()
		k.core = nil
	}
}

// quietOnce guards quiet: govpp's logger is a package variable and may be set only before it is used.
var quietOnce sync.Once

// quiet stops govpp from writing to stderr; govpp logs only errors that it also returns.
func quiet() {
	quietOnce.Do(func() {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		silent.SetLevel(logrus.PanicLevel)
		core.SetLogger(silent)
	})
}

// rawAdapter lets govpp's core use a transport.
type rawAdapter struct {
	conn *Conn
	t    *transport
	got  adapter.MsgCallback
	read chan struct{}       // closed when reading has ended
	risk map[uint16]*msgType // requests that may have to be rejected, by number
}

func (a *rawAdapter) Connect() error {
	t, err := dial(a.conn.life.ctx, a.conn.cfg.Socket, a.conn.cfg.Client+"-channels", a.conn.cfg.HealthTimeout)
	if err != nil {
		return err
	}
	a.t, a.read, a.risk = t, make(chan struct{}), map[uint16]*msgType{}
	for _, m := range guarded() {
		if id, err := t.number(m); err == nil {
			a.risk[id] = newMsgType(m)
		}
	}
	go func() { // the reader of this connection; Disconnect joins it
		defer close(a.read)
		t.read(a)
	}()
	return nil
}

func (a *rawAdapter) Disconnect() error {
	a.t.fail(ErrClosed)
	<-a.read
	return nil
}

func (a *rawAdapter) lost() bool {
	select {
	case <-a.t.done:
		return true
	default:
		return false
	}
}

func (a *rawAdapter) GetMsgID(name, crc string) (uint16, error) {
	if id, ok := a.t.ids[name+"_"+crc]; ok {
		return id, nil
	}
	return 0, &adapter.UnknownMsgError{MsgName: name, MsgCrc: crc}
}

func (a *rawAdapter) SendMsg(context uint32, data []byte) error {
	frame, err := rawFrame(data, a.t.client, context)
	if err != nil {
		return err
	}
	if typ := a.risk[binary.BigEndian.Uint16(data)]; typ != nil {
		m, err := typ.decode(data)
		if err == nil {
			err = neverSend(m)
		}
		if err != nil {
			return err
		}
	}
	return a.t.send(frame, a.conn.cfg.RequestTimeout)
}

func (a *rawAdapter) SetMsgCallback(got adapter.MsgCallback) { a.got = got }

func (a *rawAdapter) WaitReady() error { return nil }

func (a *rawAdapter) message(id uint16, data []byte) { a.got(id, data) }

func (a *rawAdapter) idle() {}
