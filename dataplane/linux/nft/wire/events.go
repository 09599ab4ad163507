package wire

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// events listens to what is changed in nf_tables. It is read when it is asked, without a goroutine.
type events struct {
	*Conn
	to   *link  // whose views are informed
	own  uint32 // port of the socket of which the changes are our own
	seen uint32 // the last generation of which all changes have been reported, or are our own
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

// Pause stops listening, for a transaction of ours that is so large that telling us of it would take long: a quarter of all
// the time that the kernel takes. The generation shows whether another program writes meanwhile.
func (e *events) Pause() {
	_ = e.nl.Leave(unix.NFNLGRP_NFTABLES)
}

// Resume listens again. If that fails nothing is reported, and every foreign generation counts as a change of our tables.
func (e *events) Resume() {
	_ = e.nl.Join(unix.NFNLGRP_NFTABLES)
}

// drain reads what has come so far. It is false if there will not be more.
func (e *events) drain() bool {
	for {
		err := e.nl.Receive(false, e.note)
		if errors.Is(err, netlink.ErrEmpty) {
			return true
		}
		if err != nil {
			e.to.suspectAll()
			if errors.Is(err, unix.ENOBUFS) {
				continue // some were lost, the socket works on
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

// noteGeneration notes that all changes of a generation have been reported.
func (e *events) noteGeneration(gen uint32) {
	if int32(gen-e.seen) <= 0 {
		return // known
	}
	if gen != nextGeneration(e.seen) {
		e.to.suspectAll() // we did not listen to those between
	}
	e.seen = gen
}

// tellTime is how long the kernel may take to report the rest of a transaction whose generation has begun.
const tellTime = 20 * time.Millisecond

// reach reads until all changes up to a generation have been reported; false if they are not.
func (e *events) reach(gen uint32) bool {
	for e.drain() {
		if int32(e.seen-gen) >= 0 {
			return true
		}
		if !e.nl.Wait(tellTime) {
			return false // it was not reported: we did not listen then
		}
	}
	return false
}
