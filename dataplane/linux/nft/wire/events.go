package wire

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// events receives notifications of changes in nf_tables. It has no goroutine: its methods read the socket.
type events struct {
	*Conn
	to   *link  // the link whose views are updated
	own  uint32 // port of the socket for our own changes
	seen uint32 // the last generation whose changes have all been reported, or are our own
}

func watchEvents(ns *nsdo.Namespace, to *link) (*events, error) {
	c, err := Dial(ns)
	if err != nil {
		return nil, err
	}
	if err := c.nl.Join(unix.NFNLGRP_NFTABLES); err != nil {
		c.Close()
		return nil, fmt.Errorf("listen to changes of nf_tables: %w", err)
	}
	return &events{Conn: c, to: to}, nil
}

// Pause stops notifications, for a large transaction of ours: to notify us would take a quarter of the kernel's total time. The generation
// shows whether another program writes meanwhile.
func (e *events) Pause() {
	_ = e.nl.Leave(unix.NFNLGRP_NFTABLES)
}

// Resume restarts notifications. If that fails nothing is reported, and every generation of another program counts as a change of our
// tables.
func (e *events) Resume() {
	_ = e.nl.Join(unix.NFNLGRP_NFTABLES)
}

// drain reads the notifications that have arrived. It returns false if there will be no more.
func (e *events) drain() bool {
	for {
		err := e.nl.Receive(false, e.note)
		if errors.Is(err, netlink.ErrEmpty) {
			return true
		}
		if err != nil {
			e.to.suspectAll()
			if errors.Is(err, unix.ENOBUFS) {
				continue // some were lost, the socket still works
			}
			return false
		}
	}
}

func (e *events) note(m netlink.Message) {
	payload := m.Payload
	if m.Type>>8 != unix.NFNL_SUBSYS_NFTABLES || len(payload) < sizeofNfgenmsg {
		return
	}
	if m.Type == subsys(unix.NFT_MSG_NEWGEN) {
		e.noteGeneration(Uint32(Attr(payload[sizeofNfgenmsg:], unix.NFTA_GEN_ID)))
		return
	}
	if m.Port == e.own {
		return
	}
	if family := payload[0]; family != unix.NFPROTO_IPV4 && family != unix.NFPROTO_IPV6 {
		return
	}
	name := netlink.Text(Attr(payload[sizeofNfgenmsg:], 1)) // NFTA_*_TABLE are all 1
	for _, v := range e.to.views {
		v.touched = v.touched || v.Table == name
	}
}

// noteGeneration records that all changes of a generation have been reported.
func (e *events) noteGeneration(gen uint32) {
	if int32(gen-e.seen) <= 0 {
		return // already recorded
	}
	if gen != nextGeneration(e.seen) {
		e.to.suspectAll() // we did not receive those in between
	}
	e.seen = gen
}

// reportTime is how long the kernel may take to report the rest of a transaction after the start of its generation.
const reportTime = 20 * time.Millisecond

// reach reads until all changes up to a generation have been reported; it returns false if they are not.
func (e *events) reach(gen uint32) bool {
	for e.drain() {
		if int32(e.seen-gen) >= 0 {
			return true
		}
		if !e.nl.Wait(reportTime) {
			return false // it was not reported: notifications were off
		}
	}
	return false
}
