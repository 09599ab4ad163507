package wire

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// feature is a capability that the kernel may lack.
type feature struct {
	name string
	err  error
}

func (f *feature) Key() string { return f.name }

func (f *feature) Fail(err error) { f.err = err }

func (f *feature) Failed() bool { return f.err != nil }

func (f *feature) Touch() {}

const probeTable = "contiv-probe"

// Probe sends what fill adds in a transaction that the kernel cannot complete, and therefore reverts. An error names the feature that the
// kernel lacks (BlameOn). If another program has written meanwhile, the transaction is sent again.
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
	end := &feature{name: "end"} // always fails: no set has this name
	b.DelSet(proto, "never", end)
	err = c.commit(b, b.close(), gen)
	var refused *Refusal
	if !errors.As(err, &refused) {
		return FirstError(err, errors.New("nf_tables accepted a transaction that it must reject"))
	}
	if !errors.Is(refused.Objects[end], unix.ENOENT) {
		return fmt.Errorf("the transaction ended with %w", FirstError(refused.Other, refused.Objects[end], errLost))
	}
	if first := refused.Order[0]; first != end { // the others may fail only because of it
		return fmt.Errorf("%s: %w", first.Key(), refused.Objects[first])
	}
	return refused.Other
}

// BlameOn makes a feature the object of the messages that fill adds.
func (b *Batch) BlameOn(name string, fill func()) {
	at, object := len(b.blame), &feature{name: name}
	fill()
	for i := at; i < len(b.blame); i++ {
		b.blame[i] = object
	}
}
