package wire

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// link is the nf_tables of a network namespace: a socket for transactions and listings, and one that reports writes of other programs. Several of
// our tables may share it, so that there are no notifications of what we write ourselves.
type link struct {
	NS     *nsdo.Namespace
	Cmd    *Conn
	Events *events
	Gen    uint32 // the generation of the kernel's rule set in which what we noted is true
	Grace  Grace  // of packets that are on their way through the rules
	views  []*View
}

// View is what is known of one of our tables (one name, in both families).
type View struct {
	*link
	Log   *slog.Logger
	Table string

	known     bool // what the kernel has was read
	touched   bool // another program has changed the table since
	suspect   bool // one may have
	Resync    bool // the next Sync reads the tables if anything was written since they were read
	unaudited bool // we have written since what the kernel has was read
}

func (l *link) view(table string, log *slog.Logger) *View {
	v := &View{link: l, Log: log, Table: table}
	l.views = append(l.views, v)
	return v
}

// Connect opens the sockets if they are not.
func (l *link) Connect() (err error) {
	if l.Cmd != nil {
		return nil
	}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	if l.Events, err = watchEvents(l.NS, l); err != nil {
		return err
	}
	if l.Cmd, err = Dial(l.NS); err != nil {
		return err
	}
	l.Events.own = l.Cmd.nl.Port()
	if l.Gen, err = l.Cmd.Generation(); err != nil {
		return err
	}
	l.Events.seen = l.Gen
	return nil
}

// Close closes the sockets. The next use opens them again, and reads again what the kernel has.
func (l *link) Close() {
	if l.Cmd != nil {
		l.Cmd.Close()
	}
	if l.Events != nil {
		l.Events.Close()
	}
	l.Cmd, l.Events = nil, nil
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
	gen, err := l.Cmd.Generation()
	switch {
	case err != nil:
		return err
	case gen == l.Gen:
		l.Events.drain()
	case l.Events.reach(gen):
		l.Gen = l.Events.seen
	default:
		l.suspectAll()
		l.Gen, l.Events.seen = gen, gen
	}
	return nil
}

// foreign is true if another program has changed the table, or may have.
func (v *View) foreign() bool { return v.touched || v.suspect }

// Pending is true if there is something to be read.
func (v *View) Pending() bool {
	if !v.known || v.Cmd == nil {
		return true
	}
	v.Events.drain()
	return v.foreign()
}

// Sync makes what we noted of the table true again by load, if it may not be. If nothing else has written it costs one question; if others
// have written to their own tables, a look at what was informed of that.
func (v *View) Sync(load func() error) error {
	if v.known {
		if err := v.catchUp(); err != nil {
			return err
		}
		if v.foreign() {
			v.Log.Info("another program has changed nf_tables, reading our tables again", "table", v.Table)
			v.known = false
		}
		if v.known && (!v.Resync || !v.unaudited) {
			v.Resync = false
			return nil
		}
	}
	return v.audit(load)
}

// maxAudits bounds how often the kernel is read until it does not change meanwhile.
const maxAudits = 10

// audit reads what the kernel has. Others may write to their own tables meanwhile, but not to ours.
func (v *View) audit(load func() error) error {
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
		v.known, v.Resync, v.unaudited = true, false, false
		return nil
	}
	return errors.New("our tables were changed by another program whenever they were read; which program is it?")
}

// quietBatch is the size of a transaction in bytes from which on we do not want to be informed of it.
const quietBatch = 64 << 10

// Commit sends a transaction and notes the generation that it makes. If others have written to their own tables since the last
// look, it is sent again as it is.
func (v *View) Commit(t *Batch) (err error) {
	data := t.close()
	for range MaxAttempts {
		if err = v.commitOnce(t, data); !errors.Is(err, ErrStale) {
			break
		}
		if err := v.catchUp(); err != nil {
			return err
		}
		if v.foreign() {
			return ErrStale
		}
	}
	if err == nil {
		v.unaudited = true
	}
	return err
}

func (l *link) commitOnce(t *Batch, data []byte) error {
	quiet := len(data) > quietBatch
	if quiet {
		l.Events.Pause()
		defer l.Events.Resume()
	}
	if err := l.Cmd.commit(t, data, l.Gen); err != nil {
		return err
	}
	l.Gen = nextGeneration(l.Gen)
	if quiet {
		l.Events.seen = l.Gen
	}
	return nil
}

// nextGeneration follows as in the kernel.
func nextGeneration(gen uint32) uint32 { return max(gen+1, 1) }

// Generation asks for the number of the kernel's rule set. Every transaction of any program in the namespace raises it by one.
func (c *Conn) Generation() (gen uint32, err error) {
	err = c.Get(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(attrs []byte) { gen = Uint32(Attr(attrs, unix.NFTA_GEN_ID)) })
	if err != nil {
		return 0, fmt.Errorf("ask for the generation of nf_tables: %w", err)
	}
	return gen, nil
}

// MaxAttempts bounds how often one Apply tries. Each attempt finds all that the kernel can find at once.
const MaxAttempts = 20

// RetryAfter is how long the kernel is left alone with what it refused, when nothing else is to be done.
const RetryAfter = 10 * time.Second

// WatchInterval is how often a look at the tables is asked for: every second unless watch says otherwise, 0 if never.
func WatchInterval(watch time.Duration) time.Duration {
	if watch == 0 {
		return time.Second
	}
	return max(watch, 0)
}

// Open opens the tables of a name, and is ready to talk to the kernel: by sockets of its own, or by those of another view.
func Open(ns *nsdo.Namespace, log *slog.Logger, name string, beside *View) (*View, error) {
	l := &link{NS: ns}
	if beside != nil {
		l = beside.link
	}
	if err := l.Connect(); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return l.view(name, log), nil
}

// NewBatch begins a transaction on the view's table.
func (v *View) NewBatch() *Batch { return NewBatch(v.Table, v.Cmd.seq+1) }

// Lister lists a family's table.
func (v *View) Lister(proto uint8) Lister { return Lister{v.Cmd, v.Table, proto} }

// Forget makes the next sync read what the kernel has.
func (v *View) Forget() { v.known = false }

// Again reports whether a transaction that failed without being refused is worth another try. A socket that failed is replaced, and what
// the kernel has is read again, later.
func (v *View) Again(err error) bool {
	switch {
	case errors.Is(err, ErrStale):
		v.suspect = true
		return true
	case errors.Is(err, ErrDumpChanged):
		return true
	}
	v.Close()
	return false
}
