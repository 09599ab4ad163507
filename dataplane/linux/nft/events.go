package nft

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// events listens to what is changed in nf_tables. It is read when it is asked, without a goroutine.
type events struct {
	*conn
	table string
	own   uint32 // port of the socket of which the changes are our own

	touched bool   // another program has changed our tables
	suspect bool   // one may have
	seen    uint32 // the last generation of which all changes have been told
}

func watchEvents(ns *nsdo.Namespace, table string) (*events, error) {
	c, err := dial(ns)
	if err != nil {
		return nil, err
	}
	e := &events{conn: c, table: table}
	if err := unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.NFNLGRP_NFTABLES); err != nil {
		c.close()
		return nil, fmt.Errorf("listen to changes of nf_tables: %w", err)
	}
	return e, nil
}

// pause stops listening, for a transaction of ours that is so large that telling us of it would take long. Who else writes
// meanwhile shows by the generation.
func (e *events) pause() {
	_ = unix.SetsockoptInt(e.fd, unix.SOL_NETLINK, unix.NETLINK_DROP_MEMBERSHIP, unix.NFNLGRP_NFTABLES)
}

// resume listens again. If that fails nothing is told, and every foreign generation counts as a change of our tables.
func (e *events) resume() {
	_ = unix.SetsockoptInt(e.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.NFNLGRP_NFTABLES)
}

// drain reads what has come so far. An error means that something was missed.
func (e *events) drain() error {
	for {
		err := e.receive(unix.MSG_DONTWAIT, func(h header, payload []byte) error {
			e.note(h, payload)
			return nil
		})
		if errors.Is(err, errNoMore) {
			return nil
		}
		if err != nil {
			e.suspect = true
			if errors.Is(err, unix.ENOBUFS) {
				continue // some were lost, the socket works on
			}
			return err
		}
	}
}

func (e *events) note(h header, payload []byte) {
	if h.typ>>8 != unix.NFNL_SUBSYS_NFTABLES || len(payload) < 4 {
		return
	}
	if h.typ == subsys(unix.NFT_MSG_NEWGEN) {
		e.seen = be32(attr(payload[4:], unix.NFTA_GEN_ID))
		return
	}
	if h.port == e.own {
		return
	}
	family := payload[0]
	ours := family == unix.NFPROTO_IPV4 || family == unix.NFPROTO_IPV6
	if ours && text(attr(payload[4:], 1)) == e.table { // NFTA_*_TABLE are all 1
		e.touched = true
	}
}

// generation asks for the number of the kernel's rule set. Every transaction of anybody in the namespace raises it by one.
func (c *conn) generation() (gen uint32, err error) {
	err = c.get(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(attrs []byte) { gen = be32(attr(attrs, unix.NFTA_GEN_ID)) })
	if err != nil {
		return 0, fmt.Errorf("ask for the generation of nf_tables: %w", err)
	}
	return gen, nil
}

// sync makes what we noted of the kernel true again, if it may not be. If nobody else has written it costs one question;
// if others have written to their own tables, a look at what was told of that.
func (b *Backend) sync() error {
	if b.known {
		untouched, err := b.catchUp()
		if err != nil {
			return err
		}
		if !untouched {
			b.log.Info("another program has changed nf_tables, reading our tables again", "table", b.table)
			b.known = false
		}
		if b.known && (!b.resync || !b.unaudited) {
			b.resync = false
			return nil
		}
	}
	return b.audit()
}

// catchUp makes b.gen the present generation if nothing since then was about our tables; else it returns false.
func (b *Backend) catchUp() (untouched bool, err error) {
	gen, err := b.cmd.generation()
	if err != nil {
		return false, err
	}
	if gen == b.gen {
		err := b.events.drain()
		return err == nil && !b.events.touched && !b.events.suspect, nil
	}
	if !b.events.reach(gen) {
		return false, nil
	}
	b.gen = b.events.seen
	return true, nil
}

// tellTime is how long the kernel may take to tell the rest of a transaction whose generation has begun, in milliseconds.
const tellTime = 20

// reach reads until all changes up to a generation have been told; false if one of them was about our tables, or may have been.
func (e *events) reach(gen uint32) bool {
	for {
		if err := e.drain(); err != nil || e.touched || e.suspect {
			return false
		}
		if int32(e.seen-gen) >= 0 {
			return true
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(e.fd), Events: unix.POLLIN}}, tellTime)
		if err != nil && !errors.Is(err, unix.EINTR) || ready == 0 {
			return false // it was not told: we did not listen then
		}
	}
}
