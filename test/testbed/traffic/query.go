package traffic

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

// Queries is the result of a number of requests.
type Queries struct {
	Took   []time.Duration // of the requests with a right answer, sorted
	Failed int
	Err    error // the first failure
	For    time.Duration
}

// Percentile returns the p-th percentile of the times; 0 without any.
func (a *Queries) Percentile(p int) time.Duration {
	if len(a.Took) == 0 {
		return 0
	}
	return a.Took[min(len(a.Took)-1, len(a.Took)*p/100)]
}

// PerSecond returns the number of answered requests per second.
func (a *Queries) PerSecond() float64 { return float64(len(a.Took)) / a.For.Seconds() }

func (a *Queries) fail(err error) {
	if a.Failed++; a.Err == nil {
		a.Err = err
	}
}

// waitForAnswer bounds the wait for an answer.
const waitForAnswer = 5 * time.Second

// Query sends messages of a size over one connection, for a time. It sends each message when the previous one has been
// answered.
func (t *Traffic) Query(from *netns.Namespace, to netip.AddrPort, size int, d time.Duration) (*Queries, error) {
	a := &Queries{}
	err := from.Do(func() error {
		s, err := dial(to, 0, waitForAnswer)
		if err != nil {
			return err
		}
		begin := time.Now()
		_, err = s.Write(header{kind: echo, size: uint32(size)}.bytes())
		for err == nil && time.Since(begin) < d {
			start := time.Now()
			if err = exchange(s, newMessage(size, len(a.Took)), make([]byte, size)); err == nil {
				a.Took = append(a.Took, time.Since(start))
			}
		}
		a.For = time.Since(begin)
		return errors.Join(err, s.reset())
	})
	slices.Sort(a.Took)
	if err != nil {
		return a, fmt.Errorf("ask %s from %s: %w", to, from.Name, err)
	}
	return a, nil
}

func newMessage(size, number int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(number*31 + i)
	}
	return b
}

// exchange sends a message and reads it back.
func exchange(rw io.ReadWriter, message, into []byte) error {
	if _, err := rw.Write(message); err != nil {
		return err
	}
	return readBack(rw, message, into)
}

func readBack(r io.Reader, message, into []byte) error {
	if _, err := io.ReadFull(r, into); err != nil {
		return err
	}
	for i := range into {
		if into[i] != message[i] {
			return fmt.Errorf("%w: byte %d of an answer", ErrCorrupted, i)
		}
	}
	return nil
}

// Once connects with a source port (0: any), exchanges one message of a size, and closes.
func (t *Traffic) Once(from *netns.Namespace, port uint16, to netip.AddrPort, size int, timeout time.Duration) error {
	return from.Do(func() error { return connectOnce(port, to, size, int(port), timeout) })
}

func connectOnce(port uint16, to netip.AddrPort, size, number int, timeout time.Duration) error {
	s, err := dial(to, port, timeout)
	if err != nil {
		return err
	}
	message := newMessage(size, number)
	request := append(header{kind: once, size: uint32(size)}.bytes(), message...)
	if _, err = s.Write(request); err == nil {
		err = readBack(s, message, make([]byte, size))
	}
	return errors.Join(err, s.reset())
}

// Connect makes short connections from a number of threads for a time, and exchanges one message of a size on each.
func (t *Traffic) Connect(from *netns.Namespace, to netip.AddrPort, threads, size int, d time.Duration) *Queries {
	all, begin := &Queries{}, time.Now()
	var mu sync.Mutex
	var work sync.WaitGroup
	for range threads {
		work.Go(func() {
			mine := &Queries{}
			err := from.Do(func() error {
				for time.Since(begin) < d {
					start := time.Now()
					if err := connectOnce(0, to, size, len(mine.Took), waitForAnswer); err != nil {
						mine.fail(err)
						continue
					}
					mine.Took = append(mine.Took, time.Since(start))
				}
				return nil
			})
			if err != nil {
				mine.fail(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all.Took, all.Failed = append(all.Took, mine.Took...), all.Failed+mine.Failed
			if all.Err == nil {
				all.Err = mine.Err
			}
		})
	}
	work.Wait()
	all.For = time.Since(begin)
	slices.Sort(all.Took)
	return all
}
