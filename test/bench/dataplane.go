package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// dataplaneOptions are the options of the dataplane benchmark.
type dataplaneOptions struct {
	runs    int
	parts   string
	sides   string
	json    string
	profile bool
}

// dataplaneName is the prefix of the names of everything that the benchmark makes.
const dataplaneName = "contiv-bench-d"

// part is a part of the dataplane benchmark. Its sides take turns; each turn begins with a new world.
type part struct {
	name, what string
	reference  string
	byMin      bool // compare minima
	sides      func(e *env) []turnSide
}

// turnSide is a side that takes turns.
type turnSide struct {
	name    string
	standIn bool
	// turn measures everything once.
	turn func(ctx context.Context, add adder) error
}

// adder records a measured value.
type adder = func(what, unit string, value float64)

func dataplaneParts() []part {
	return []part{
		{"clocks", "clocks per packet of VPP's graph, by its packet generator", "plain", true, clockSides},
		{"load", "TCP streams, requests and connections between pods", linuxSide, false, loadSides},
		{"bare", "two VPPs without agents: how each reaches its namespace, and the other VPP", "AF_PACKET v2, AF_PACKET v2", false, bareSides},
	}
}

// benchDataplane runs the sides of each part in turns. If it is interrupted, the results so far are printed and written,
// too.
func benchDataplane(ctx context.Context, e *env) error {
	o := e.dataplane
	if o.runs < 1 {
		return errors.New("-runs: at least 1")
	}
	out := &report{Tables: map[string]*table{}}
	for _, p := range dataplaneParts() {
		if selected(o.parts, p.name) && ctx.Err() == nil {
			out.measure(ctx, e, p)
		}
	}
	if o.json != "" {
		if err := out.write(o.json); err != nil {
			return fmt.Errorf("-json: %w", err)
		}
	}
	if len(out.Faults) > 0 {
		return errors.Join(fmt.Errorf("%d turns failed", len(out.Faults)), ctx.Err())
	}
	return ctx.Err()
}

// measure runs one part.
func (out *report) measure(ctx context.Context, e *env, p part) {
	o := e.dataplane
	sides := slices.DeleteFunc(p.sides(e), func(s turnSide) bool { return !selected(o.sides, s.name) })
	if len(sides) == 0 {
		return
	}
	fmt.Printf("   -- %s: %s; %d runs, sides in turns\n", p.name, p.what, o.runs)
	t := &table{Reference: p.reference, ByMin: p.byMin}
	out.Tables[p.name] = t
	for _, s := range sides {
		if s.standIn {
			t.StandIn = append(t.StandIn, s.name)
		}
	}
	for n := range o.runs {
		out.Load = append(out.Load, loadAverage())
		fmt.Printf("   run %d, load average %s\n", n+1, loadAverage())
		for _, s := range sides {
			if ctx.Err() != nil {
				break
			}
			if err := takeTurn(ctx, s, t); err != nil {
				fault := fmt.Sprintf("%s, run %d: %v", s.name, n+1, err)
				out.Faults = append(out.Faults, fault)
				fmt.Println("   FAILED:", firstLines(fault, 12))
			}
		}
	}
	t.print(os.Stdout)
	e.recorded = append(e.recorded, charted(t)...)
}

func takeTurn(ctx context.Context, s turnSide, t *table) error {
	return s.turn(ctx, func(what, unit string, value float64) { t.add(s.name, what, unit, value) })
}

// selected reports whether a list contains name; an empty list contains all names.
func selected(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

func firstLines(text string, n int) string {
	lines := strings.SplitN(text, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}
