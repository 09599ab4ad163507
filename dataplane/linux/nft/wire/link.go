package wire

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// link is a connection to the nf_tables of a network namespace: a socket for transactions and listings, and one that receives notifications
// of other programs' writes. Several of our tables may share it, so that our own writes cause no notifications.
type link struct {
	NS     *nsdo.Namespace
	Cmd    *Conn
	Events *events
	Gen    uint32 // the generation of the kernel's rule set that the recorded state corresponds to
	Grace  Grace  // for packets that are being processed by the rules
	views  []*View
}

// View is the recorded state of one of our tables (one name, in both families).
type View struct {
	*link
	Log   *slog.Logger
	Table string

	known     bool // the kernel's state was read
	touched   bool // another program has changed the table since
	suspect   bool // another program may have changed it
	Resync    bool // the next Sync reads the tables if anything was written since they were read
	unaudited bool // we have written since the kernel's state was read
	reread    bool // the kernel's state was read, or has to be read, again because another program may have changed it; see Repaired
}

func (l *link) view(table string, log *slog.Logger) *View {
	v := &View{link: l, Log: log, Table: table}
	l.views = append(l.views, v)
	return v
}

// Connect opens the sockets unless they are open.
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

// Close closes the sockets. The next use opens them again and reads the kernel's state again.
func (l *link) Close() {
	if l.Cmd != nil {
		l.Cmd.Close()
	}
	if l.Events != nil {
		l.Events.Close()
	}
	l.Cmd, l.Events = nil, nil
	for _, v := range l.views {
		v.reread = v.reread || v.known
		v.known = false
	}
}

// suspectAll records that notifications were missed.
func (l *link) suspectAll() {
	for _, v := range l.views {
		v.suspect = true
	}
}

// catchUp records the current generation, and which tables other programs have changed since the recorded one.
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

// foreign reports whether another program has changed the table, or may have.
func (v *View) foreign() bool { return v.touched || v.suspect }

// Pending reports whether the kernel's state has to be read.
func (v *View) Pending() bool {
	if !v.known || v.Cmd == nil {
		return true
	}
	v.Events.drain()
	return v.foreign()
}

// Sync calls load to read the table again if the recorded state may be outdated. If no other program has written, it costs one request; if
// others have written to their own tables, it also reads the notifications.
func (v *View) Sync(load func() error) error {
	if v.known {
		if err := v.catchUp(); err != nil {
			return err
		}
		if v.foreign() {
			v.Log.Info("another program has changed nf_tables, reading our tables again", "table", v.Table)
			v.known, v.reread = false, true
		}
		if v.known && (!v.Resync || !v.unaudited) {
			v.Resync = false
			return nil
		}
	}
	return v.audit(load)
}

// Repaired reports whether the writes since the last call, which are complete, may have repaired changes of another program.
func (v *View) Repaired(writes int) bool {
	repaired := v.reread && writes > 0
	v.reread = false
	return repaired
}

// maxAudits limits how often the kernel's state is read until it does not change meanwhile.
const maxAudits = 10

// audit reads the kernel's state. Other programs may write to their own tables meanwhile, but not to ours.
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
			continue // the data read may be of different generations
		case failed != nil:
			return failed
		}
		v.known, v.Resync, v.unaudited = true, false, false
		return nil
	}
	return errors.New("our nftables tables changed during each read; find the other program that writes to them (nft monitor) and stop it")
}

// quietBatch is the size in bytes from which on notifications are paused during a transaction.
const quietBatch = 64 << 10

// Commit sends a transaction and records the resulting generation. If other programs have written to their own tables meanwhile, the
// transaction is sent again unchanged.
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

// nextGeneration returns the number of the next generation, as the kernel computes it.
func nextGeneration(gen uint32) uint32 { return max(gen+1, 1) }

// Generation reads the number of the kernel's rule set. Every transaction of any program in the namespace increases it by one.
func (c *Conn) Generation() (gen uint32, err error) {
	err = c.Get(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(attrs []byte) { gen = Uint32(Attr(attrs, unix.NFTA_GEN_ID)) })
	if err != nil {
		return 0, fmt.Errorf("get the generation of nf_tables: %w", err)
	}
	return gen, nil
}

// MaxAttempts limits the attempts of one Apply. Each attempt finds all errors that the kernel can find at once.
const MaxAttempts = 20

// RetryAfter is the delay before rejected objects are retried, if there is nothing else to do.
const RetryAfter = 10 * time.Second

// WatchInterval returns the interval of table checks: 1 s if watch is 0, never (0) if it is negative, otherwise watch.
func WatchInterval(watch time.Duration) time.Duration {
	if watch == 0 {
		return time.Second
	}
	return max(watch, 0)
}

// Open opens the tables of a name, with sockets of its own or, if beside is not nil, with those of another view.
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

// NewBatch starts a transaction on the view's table.
func (v *View) NewBatch() *Batch { return NewBatch(v.Table, v.Cmd.seq+1) }

// Lister returns a Lister of a family's table.
func (v *View) Lister(proto uint8) Lister { return Lister{v.Cmd, v.Table, proto} }

// Invalidate makes the next Sync read the kernel's state.
func (v *View) Invalidate() { v.known = false }

// Again reports whether to retry a transaction that failed without being rejected. After an error of the socket, the socket is replaced and
// the kernel's state is read again later.
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
