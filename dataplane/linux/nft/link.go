package nft

import (
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// link is the nf_tables of a network namespace: a socket for transactions and listings, and one that reports who else writes. Several of
// our tables may share it, so that there are no notifications of what we write ourselves.
type link struct {
	ns     *nsdo.Namespace
	cmd    *conn
	events *events
	gen    uint32 // the generation of the kernel's rule set in which what we noted is true
	views  []*view
}

// view is what is known of one of our tables (one name, in both families).
type view struct {
	*link
	log   *slog.Logger
	table string

	known     bool // what the kernel has was read
	touched   bool // another program has changed the table since
	suspect   bool // one may have
	resync    bool // Resync was called
	unaudited bool // we have written since what the kernel has was read
}

func (l *link) view(table string, log *slog.Logger) *view {
	v := &view{link: l, log: log, table: table}
	l.views = append(l.views, v)
	return v
}

// connect opens the sockets if they are not.
func (l *link) connect() (err error) {
	if l.cmd != nil {
		return nil
	}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.events, err = watchEvents(l.ns, l); err != nil {
		return err
	}
	if l.cmd, err = dial(l.ns); err != nil {
		return err
	}
	l.events.own = l.cmd.port
	if l.gen, err = l.cmd.generation(); err != nil {
		return err
	}
	l.events.seen = l.gen
	return nil
}

// close closes the sockets. Who comes next opens them again, and reads again what the kernel has.
func (l *link) close() {
	if l.cmd != nil {
		l.cmd.close()
	}
	if l.events != nil {
		l.events.close()
	}
	l.cmd, l.events = nil, nil
	for _, v := range l.views {
		v.known = false
	}
}

// suspectAll notes that something was missed.
func (l *link) suspectAll() {
	for _, v := range l.views {
		v.suspect = true
	}
}

// catchUp makes the present generation ours, and notes whose tables were changed by others since.
func (l *link) catchUp() error {
	gen, err := l.cmd.generation()
	switch {
	case err != nil:
		return err
	case gen == l.gen:
		l.events.drain()
	case l.events.reach(gen):
		l.gen = l.events.seen
	default:
		l.suspectAll()
		l.gen, l.events.seen = gen, gen
	}
	return nil
}

// foreign is true if another program has changed the table, or may have.
func (v *view) foreign() bool { return v.touched || v.suspect }

// pending is true if there is something to be read.
func (v *view) pending() bool {
	if !v.known || v.cmd == nil {
		return true
	}
	v.events.drain()
	return v.foreign()
}

// sync makes what we noted of the table true again by load, if it may not be. If nothing else has written it costs one question; if others
// have written to their own tables, a look at what was informed of that.
func (v *view) sync(load func() error) error {
	if v.known {
		if err := v.catchUp(); err != nil {
			return err
		}
		if v.foreign() {
			v.log.Info("another program has changed nf_tables, reading our tables again", "table", v.table)
			v.known = false
		}
		if v.known && (!v.resync || !v.unaudited) {
			v.resync = false
			return nil
		}
	}
	return v.audit(load)
}

// maxAudits bounds how often the kernel is read until it does not change meanwhile.
const maxAudits = 10

// audit reads what the kernel has. Others may write to their own tables meanwhile, but not to ours.
func (v *view) audit(load func() error) error {
	for range maxAudits {
		if err := v.catchUp(); err != nil {
			return err
		}
		v.touched, v.suspect = false, false
		failed := load()
		if err := v.catchUp(); err != nil {
			return err
		}
		switch {
		case v.foreign():
			continue // what was read may be of different generations
		case failed != nil:
			return failed
		}
		v.known, v.resync, v.unaudited = true, false, false
		return nil
	}
	return errors.New("our tables were changed by another program whenever they were read; which program is it?")
}

// quietBatch is the size of a transaction in bytes from which on we do not want to be informed of it.
const quietBatch = 64 << 10

// commit sends a transaction and notes the generation that it makes. If others have written to their own tables since the last
// look, it is sent again as it is.
func (v *view) commit(t *batch) (err error) {
	data := t.close()
	for range maxAttempts {
		if err = v.commitOnce(t, data); !errors.Is(err, errStale) {
			break
		}
		if err := v.catchUp(); err != nil {
			return err
		}
		if v.foreign() {
			return errStale
		}
	}
	if err == nil {
		v.unaudited = true
	}
	return err
}

func (l *link) commitOnce(t *batch, data []byte) error {
	quiet := len(data) > quietBatch
	if quiet {
		l.events.pause()
		defer l.events.resume()
	}
	if err := l.cmd.commit(t, data, l.gen); err != nil {
		return err
	}
	l.gen = nextGeneration(l.gen)
	if quiet {
		l.events.seen = l.gen
	}
	return nil
}

// nextGeneration follows as in the kernel.
func nextGeneration(gen uint32) uint32 { return max(gen+1, 1) }

// generation asks for the number of the kernel's rule set. Every transaction of any program in the namespace raises it by one.
func (c *conn) generation() (gen uint32, err error) {
	err = c.get(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(attrs []byte) { gen = be32(attr(attrs, unix.NFTA_GEN_ID)) })
	if err != nil {
		return 0, fmt.Errorf("ask for the generation of nf_tables: %w", err)
	}
	return gen, nil
}
