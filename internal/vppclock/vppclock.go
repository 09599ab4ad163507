package vppclock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"time"
)

// tolerance is how wrong a clock may be: 0.05 is 5 %.
const tolerance = 0.05

// Rate is how many seconds VPP counts in one: it is between the two.
type Rate struct{ Low, High float64 }

// Right and Wrong say whether the clock certainly is; neither where the machine was too busy to tell.
func (r Rate) Right() bool { return r.Low >= 1-tolerance && r.High <= 1+tolerance }

// Wrong is the contrary of Right.
func (r Rate) Wrong() bool { return r.High < 1-tolerance || r.Low > 1+tolerance }

func (r Rate) String() string { return fmt.Sprintf("%.2f", (r.Low+r.High)/2) }

// reading is what VPP's clock showed at a moment between the two.
type reading struct {
	vpp           float64 // seconds
	before, after time.Time
}

func (r reading) until(later reading) Rate {
	passed := later.vpp - r.vpp
	rate := Rate{Low: passed / later.after.Sub(r.before).Seconds(), High: 1e9}
	if least := later.before.Sub(r.after).Seconds(); least > 0 {
		rate.High = passed / least
	}
	return rate
}

// Measure compares the clocks for a first pause, and for longer ones until it is certain. cli is VPP's CLI socket, normally
// /run/vpp/cli.sock. An error says that VPP does not answer, or that ctx has ended first.
func Measure(ctx context.Context, cli string, pause time.Duration) (Rate, error) {
	first, err := readSoon(ctx, cli)
	if err != nil {
		return Rate{}, err
	}
	for {
		select {
		case <-ctx.Done():
			return Rate{}, fmt.Errorf("VPP's clock: not certain yet: %w", ctx.Err())
		case <-time.After(pause):
		}
		now, err := readSoon(ctx, cli)
		if err != nil {
			return Rate{}, err
		}
		if rate := first.until(now); rate.Right() || rate.Wrong() {
			return rate, nil
		}
		pause *= 2
	}
}

// timeNow: VPP writes no zero before the point.
var timeNow = regexp.MustCompile(`Time now (\d*\.\d+),`)

// firstTimeout is the timeout of the first answer, and that of each later one is twice as long. VPP leaves some unanswered that are asked for while it
// starts. With workers, a VPP whose clock is 2,500 times too slow answers within 2.5 seconds: it keeps its workers running for a millisecond of its own
// time between two commands.
const firstTimeout = 500 * time.Millisecond

// readSoon asks until there is an answer.
func readSoon(ctx context.Context, cli string) (reading, error) {
	for timeout := firstTimeout; ; timeout *= 2 {
		r, err := read(ctx, cli, timeout)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return r, err
		}
	}
}

// read asks "show clock". The answer begins with what a terminal would want to know, and ends with a prompt.
func read(ctx context.Context, cli string, timeout time.Duration) (reading, error) {
	fail := func(err error) (reading, error) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return reading{}, fmt.Errorf("VPP's clock: %s: %w", cli, err)
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", cli)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return fail(err)
	}
	r := reading{before: time.Now()}
	if _, err := c.Write([]byte("show clock\n")); err != nil {
		return fail(err)
	}
	var got bytes.Buffer
	for chunk := make([]byte, 4096); ; {
		n, err := c.Read(chunk)
		r.after = time.Now()
		got.Write(chunk[:n])
		if m := timeNow.FindSubmatch(got.Bytes()); m != nil {
			if r.vpp, err = strconv.ParseFloat(string(m[1]), 64); err != nil {
				return fail(err)
			}
			return r, nil
		}
		if err != nil {
			return fail(fmt.Errorf("no time in the answer %q: %w", got.Bytes(), err))
		}
	}
}
