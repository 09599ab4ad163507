package wire

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// feature is something that the kernel may not have.
type feature struct {
	name string
	err  error
}

func (f *feature) Key() string { return f.name }

func (f *feature) Fail(err error) { f.err = err }

func (f *feature) Failed() bool { return f.err != nil }

func (f *feature) Touch() {}

const probeTable = "contiv-probe"

// Probe asks the kernel for what fill adds, in a transaction that it cannot complete, and so undoes: what may be missing is blamed on
// features. If another program has written meanwhile, it asks again.
func Probe(ns *nsdo.Namespace, proto uint8, fill func(*Batch) error) error {
	c, err := Dial(ns)
	if err != nil {
		return err
	}
	defer c.Close()
	for range MaxAttempts {
		if err = c.probe(proto, fill); !errors.Is(err, ErrStale) {
			break
		}
	}
	return err
}

func (c *Conn) probe(proto uint8, fill func(*Batch) error) error {
	gen, err := c.Generation()
	if err != nil {
		return err
	}
	b := NewBatch(probeTable, c.seq+1)
	if err := fill(b); err != nil {
		return err
	}
	end := &feature{name: "end"} // fails always: nothing has such a set
	b.DelSet(proto, "never", end)
	err = c.commit(b, b.close(), gen)
	var refused *Refusal
	if !errors.As(err, &refused) {
		return FirstError(err, errors.New("a transaction that must fail did not"))
	}
	if !errors.Is(refused.Objects[end], unix.ENOENT) {
		return fmt.Errorf("the transaction ended with %w", FirstError(refused.Other, refused.Objects[end], errLost))
	}
	if first := refused.Order[0]; first != end { // others may only fail because of it
		return fmt.Errorf("%s: %w", first.Key(), refused.Objects[first])
	}
	return refused.Other
}

// BlameOn makes a feature the one to blame for the messages that fill adds.
func (b *Batch) BlameOn(name string, fill func()) {
	at, object := len(b.blame), &feature{name: name}
	fill()
	for i := at; i < len(b.blame); i++ {
		b.blame[i] = object
	}
}
