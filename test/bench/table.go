package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// table holds the measurements of several sides that took turns: each row has one value per side and
// turn.
type table struct {
	Reference string   `json:"reference"` // the side with which the others are compared
	Sides     []string `json:"sides"`
	StandIn   []string `json:"standIn"` // sides whose packets pass the stand-in for vhost-net
	// ByMin compares minima instead of medians: other processes on the machine can only increase clocks.
	ByMin bool   `json:"byMin"`
	Rows  []*row `json:"rows"`
}

type row struct {
	What   string               `json:"what"`
	Unit   string               `json:"unit"`
	Values map[string][]float64 `json:"values"` // by side, in the order of turns
}

// add adds a value of a side.
func (t *table) add(side, what, unit string, value float64) {
	if !slices.Contains(t.Sides, side) {
		t.Sides = append(t.Sides, side)
	}
	i := slices.IndexFunc(t.Rows, func(r *row) bool { return r.What == what })
	if i < 0 {
		i = len(t.Rows)
		t.Rows = append(t.Rows, &row{What: what, Unit: unit, Values: map[string][]float64{}})
	}
	t.Rows[i].Values[side] = append(t.Rows[i].Values[side], value)
}

// summary returns the minimum and the median of some values; NaN without any.
func summary(values []float64) (smallest, median float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[0], (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// figure returns the value by which a side is compared.
func (t *table) figure(values []float64) float64 {
	smallest, median := summary(values)
	if t.ByMin {
		return smallest
	}
	return median
}

// print writes each row as a line per side: median, minimum and maximum, and the ratio to the reference.
func (t *table) print(w io.Writer) {
	marked := false
	fmt.Fprintf(w, "   medians; ratios of %s to %s\n", map[bool]string{true: "minima", false: "medians"}[t.ByMin], t.Reference)
	for _, r := range t.Rows {
		fmt.Fprintf(w, "   %s, %s\n", r.What, r.Unit)
		reference := t.figure(r.Values[t.Reference])
		for _, side := range t.Sides {
			values := r.Values[side]
			if len(values) == 0 {
				continue
			}
			smallest, median := summary(values)
			name := side
			if slices.Contains(t.StandIn, side) {
				name, marked = name+" *", true
			}
			line := fmt.Sprintf("      %-22s %10s  (min %s, max %s, %d runs)", name, number(median), number(smallest),
				number(slices.Max(values)), len(values))
			if side != t.Reference && reference > 0 {
				line += fmt.Sprintf("  %.2fx", t.figure(values)/reference)
			}
			fmt.Fprintln(w, strings.TrimRight(line, " "))
		}
	}
	if marked {
		fmt.Fprintln(w, "   * its packets pass the stand-in for vhost-net (dataplane/vpp/vpptest/vhostshim)")
	}
}

// number formats a value with three significant digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// report is the file that -json writes.
type report struct {
	VPP    string            `json:"vpp,omitempty"`
	Load   []string          `json:"load"` // /proc/loadavg before each turn
	Tables map[string]*table `json:"tables"`
	Faults []string          `json:"faults,omitempty"`
}

func (r *report) write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// loadAverage returns the load average of the machine.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(data))
	return strings.Join(fields[:min(3, len(fields))], " ")
}
