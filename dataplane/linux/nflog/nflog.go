package nflog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// Numbers of linux/netfilter/nfnetlink_log.h.
const (
	msgPacket = unix.NFNL_SUBSYS_ULOG << 8
	msgConfig = unix.NFNL_SUBSYS_ULOG<<8 | 1

	attrPayload = 9
	attrPrefix  = 10

	cfgCommand = 1
	cfgMode    = 2
	cfgTimeout = 4
	cfgQueue   = 5

	commandBind = 1
	copyPacket  = 2

	sizeofNfGenMsg = 4
)

// buffer is the size in bytes of the kernel's receive buffer for us. Packets beyond it are lost, which Watch tolerates.
const buffer = 256 << 10

// batch is the number of packets that the kernel collects into one message. It waits for batchTime hundredths of a second at most.
const (
	batch     = 32
	batchTime = 20
)

// Packet is a packet that a rule has sent.
type Packet struct {
	Prefix string // of the rule
	Data   []byte // the packet from the network header on, as much as the rule sends; valid only during the call
}

// Watcher receives the packets of a group.
type Watcher struct{ events *netlink.Events }

// Open binds to a group of a namespace; nil means that of the process. bytes is the number of bytes wanted of each packet. An error
// reports, for example, that the kernel has no nfnetlink_log, or that another program has bound to the group.
func Open(ns *nsdo.Namespace, group uint16, bytes uint32) (*Watcher, error) {
	e, err := netlink.Listen(ns, unix.NETLINK_NETFILTER, buffer)
	if err != nil {
		return nil, fmt.Errorf("NFLOG: %w", err)
	}
	w := &Watcher{e}
	if err := w.bind(group, bytes); err != nil {
		return nil, errors.Join(fmt.Errorf("NFLOG group %d: %w", group, err), e.Close())
	}
	return w, nil
}

// bind binds to the group and waits for the kernel's answer.
func (w *Watcher) bind(group uint16, bytes uint32) error {
	header := append([]byte{unix.AF_UNSPEC, 0}, binary.BigEndian.AppendUint16(nil, group)...)
	var b netlink.Batch
	b.Begin(msgConfig, unix.NLM_F_ACK, header)
	b.Uint8(cfgCommand, commandBind)
	if err := w.query(&b); err != nil {
		return err
	}
	b.Reset()
	b.Begin(msgConfig, unix.NLM_F_ACK, header)
	b.Attr(cfgMode, append(binary.BigEndian.AppendUint32(nil, bytes), copyPacket, 0))
	b.Attr(cfgTimeout, binary.BigEndian.AppendUint32(nil, batchTime))
	b.Attr(cfgQueue, binary.BigEndian.AppendUint32(nil, batch))
	return w.query(&b)
}

// answerWait limits the wait for the kernel's answer.
const answerWait = 2 * time.Second

func (w *Watcher) query(b *netlink.Batch) error {
	if err := w.events.Send(b); err != nil {
		return err
	}
	if err := w.events.SetDeadline(time.Now().Add(answerWait)); err != nil {
		return err
	}
	var answered bool
	var failure error
	for !answered {
		err := w.events.Receive(func(typ uint16, payload []byte) {
			if typ != unix.NLMSG_ERROR || len(payload) < 4 {
				return // a packet that arrived before the answer
			}
			answered = true
			if errno := -int32(binary.NativeEndian.Uint32(payload)); errno != 0 {
				failure = unix.Errno(errno)
			}
		})
		if err != nil && !errors.Is(err, netlink.ErrLost) {
			return err
		}
	}
	return errors.Join(failure, w.events.SetDeadline(time.Time{}))
}

// Close closes the socket and ends Watch.
func (w *Watcher) Close() error { return w.events.Close() }

// Watch calls each for every packet until ctx ends. Packets that arrive faster than they are handled are lost.
func (w *Watcher) Watch(ctx context.Context, each func(Packet)) error {
	stop := context.AfterFunc(ctx, func() { _ = w.events.SetDeadline(time.Unix(1, 0)) }) // fails only once it is closed
	defer stop()
	for {
		err := w.events.Receive(func(typ uint16, payload []byte) {
			if p, ok := parse(typ, payload); ok {
				each(p)
			}
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, netlink.ErrLost) && !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("NFLOG: %w", err)
		}
	}
}

func parse(typ uint16, payload []byte) (p Packet, ok bool) {
	if typ != msgPacket {
		return p, false
	}
	ok = netlink.Attributes(payload, sizeofNfGenMsg, func(typ uint16, v []byte) {
		switch typ {
		case attrPrefix:
			p.Prefix = netlink.Text(v)
		case attrPayload:
			p.Data = v
		}
	})
	return p, ok && len(p.Data) > 0
}
