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

// tolerance is the permitted error of a clock: 0.05 is 5 %.
const tolerance = 0.05

// Rate is the number of seconds that VPP counts in one second: it is between Low and High.
type Rate struct{ Low, High float64 }

// Right reports whether the clock is certainly right. If the machine was too busy to decide, neither Right nor Wrong is true.
func (r Rate) Right() bool { return r.Low >= 1-tolerance && r.High <= 1+tolerance }

// Wrong reports whether the clock is certainly wrong.
func (r Rate) Wrong() bool { return r.High < 1-tolerance || r.Low > 1+tolerance }

func (r Rate) String() string { return fmt.Sprintf("%.2f", (r.Low+r.High)/2) }

// reading is a value of VPP's clock, read at a time between the two kernel times.
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

// Measure compares the clocks over a first pause, and over longer ones until the result is certain. cli is VPP's CLI socket, normally
// /run/vpp/cli.sock. An error means that VPP does not respond, or that ctx has ended first.
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

// timeNow matches VPP's time; VPP writes no zero before the decimal point.
var timeNow = regexp.MustCompile(`Time now (\d*\.\d+),`)

// firstTimeout is the timeout of the first query; each later timeout is twice as long. VPP leaves some queries unanswered that arrive during its
// start. With workers, a VPP whose clock is 2,500 times too slow answers within 2.5 seconds: it keeps its workers running for a millisecond of its
// own time between two commands.
const firstTimeout = 500 * time.Millisecond

// readSoon repeats the query until VPP answers.
func readSoon(ctx context.Context, cli string) (reading, error) {
	for timeout := firstTimeout; ; timeout *= 2 {
		r, err := read(ctx, cli, timeout)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return r, err
		}
	}
}

// read runs "show clock". The answer begins with terminal control sequences, and ends with a prompt.
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
