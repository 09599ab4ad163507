package scheduler

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Filter selects values; empty fields select all.
type Filter struct {
	Kind      string // name of the kind
	Key       string
	KeyPrefix string
	States    []State
}

func (f *Filter) keeps(n *node) bool {
	return (f.Kind == "" || n.kind.name == f.Kind) && (f.Key == "" || n.key == f.Key) &&
		strings.HasPrefix(n.key, f.KeyPrefix) && (len(f.States) == 0 || slices.Contains(f.States, n.state))
}

// Value is one value of a dump. Values must not be changed.
type Value struct {
	Key     string
	Kind    string
	Parent  string // parent of an item
	State   State
	Desired any // nil: not desired
	Applied any // nil: absent, as far as the scheduler has seen
}

// ValueStatus is the state of one value.
type ValueStatus struct {
	Key     string
	Kind    string
	State   State
	Error   string     `json:",omitempty"`
	Waits   []string   `json:",omitempty"` // keys of the missing dependencies
	Cycle   []string   `json:",omitempty"` // the cycle of dependencies that contains the value
	Retries int        `json:",omitempty"` // scheduled so far
	RetryAt *time.Time `json:",omitempty"`
}

// GraphNode is one value with its dependencies.
type GraphNode struct {
	Key    string
	Kind   string // empty: only a name that other values wait for
	State  State
	Parent string
	Deps   []string // the parent not included
}

// each visits the values that a filter selects, in no particular order, while it holds the lock.
func (s *Scheduler) each(f Filter, visit func(n *node)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if f.Key != "" {
		if n := s.graph.nodes[f.Key]; n != nil && n.kind != nil && f.keeps(n) {
			visit(n)
		}
		return
	}
	for _, k := range s.reg.kinds {
		if f.Kind != "" && k.name != f.Kind {
			continue
		}
		for _, n := range k.nodes {
			if f.keeps(n) {
				visit(n)
			}
		}
	}
}

// Dump returns the values that f selects, from the scheduler's state: it does not read the dataplane.
func (s *Scheduler) Dump(f Filter) []Value {
	var out []Value
	s.each(f, func(n *node) {
		v := Value{Key: n.key, Kind: n.kind.name, State: n.state, Desired: n.desired, Applied: n.applied}
		if p := n.parent(); p != nil {
			v.Parent = p.key
		}
		out = append(out, v)
	})
	slices.SortFunc(out, func(a, b Value) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// Status returns the states of the values that f selects.
func (s *Scheduler) Status(f Filter) []ValueStatus {
	var out []ValueStatus
	s.each(f, func(n *node) {
		v := ValueStatus{Key: n.key, Kind: n.kind.name, State: n.state}
		if n.err != nil {
			v.Error = n.err.Error()
		}
		if n.state == Pending {
			v.Waits, v.Cycle = n.missing(), n.cycle()
		}
		if n.retry != nil {
			due := n.retry.due
			v.Retries, v.RetryAt = n.retry.attempt, &due
		}
		out = append(out, v)
	})
	slices.SortFunc(out, func(a, b ValueStatus) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// Counts returns the number of values in each state.
func (s *Scheduler) Counts() map[State]int {
	counts := map[State]int{}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.reg.kinds {
		for _, n := range k.nodes {
			counts[n.state]++
		}
	}
	return counts
}

// Graph returns the values that f selects, with their dependencies.
func (s *Scheduler) Graph(f Filter) []GraphNode {
	var out []GraphNode
	s.each(f, func(n *node) {
		v := GraphNode{Key: n.key, Kind: n.kind.name, State: n.state}
		for i := range n.edges {
			switch e := &n.edges[i]; {
			case e.bits&edgeParent != 0:
				v.Parent = e.to.key
			default:
				v.Deps = append(v.Deps, e.to.key)
			}
		}
		slices.Sort(v.Deps)
		out = append(out, v)
	})
	slices.SortFunc(out, func(a, b GraphNode) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// writeDot writes a graph in the Graphviz DOT language.
func writeDot(w io.Writer, nodes []GraphNode) error {
	var b strings.Builder
	b.WriteString("digraph scheduler {\n\trankdir=LR; node [shape=box];\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "\t%s [label=%s];\n", strconv.Quote(n.Key), strconv.Quote(n.Key+"\n"+n.Kind+" "+n.State.String()))
		if n.Parent != "" {
			fmt.Fprintf(&b, "\t%s -> %s [style=dashed];\n", strconv.Quote(n.Key), strconv.Quote(n.Parent))
		}
		for _, d := range n.Deps {
			fmt.Fprintf(&b, "\t%s -> %s;\n", strconv.Quote(n.Key), strconv.Quote(d))
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// missing returns the keys of the absent dependencies of the desired value of n.
func (n *node) missing() []string {
	var keys []string
	for i := range n.edges {
		if e := &n.edges[i]; e.bits&edgeWant != 0 && !e.to.present() {
			keys = append(keys, e.to.key)
		}
	}
	slices.Sort(keys)
	return keys
}

// waits describes why n is pending.
func (n *node) waits() string {
	if c := n.cycle(); c != nil {
		return "dependency cycle " + strings.Join(c, " -> ")
	}
	missing := n.missing()
	if len(missing) == 0 {
		return "a dependency that failed"
	}
	if len(missing) > 3 {
		return strings.Join(missing[:3], ", ") + " and " + strconv.Itoa(len(missing)-3) + " more"
	}
	return strings.Join(missing, ", ")
}

// cycle returns a path from n through absent dependencies back to n, or nil if there is none.
func (n *node) cycle() []string {
	seen := map[*node]bool{}
	var find func(m *node) []string
	find = func(m *node) []string {
		for i := range m.edges {
			e := &m.edges[i]
			switch {
			case e.bits&edgeWant == 0 || e.to.present():
			case e.to == n:
				return []string{m.key, n.key}
			case e.to.desired != nil && !seen[e.to]:
				seen[e.to] = true
				if rest := find(e.to); rest != nil {
					return append([]string{m.key}, rest...)
				}
			}
		}
		return nil
	}
	return find(n)
}

// Stats holds counters of the scheduler since its start.
type Stats struct {
	Txns, Reverted     uint64
	Creates, Updates   uint64 // operations, failed ones included
	Deletes, OpsFailed uint64
	Dumps              uint64 // of single kinds
	PlanTime, ExecTime time.Duration
	Values             int // in the graph
}

// Stats returns the counters, for metrics.
func (s *Scheduler) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.stats
	for _, k := range s.reg.kinds {
		st.Values += len(k.nodes)
	}
	return st
}

func (st *Stats) count(x *execution) {
	for i := range x.ops {
		o := &x.ops[i]
		if o.phase != opDone && o.phase != opOver {
			continue
		}
		switch x.s.plan.ops[i].act {
		case actDelete:
			st.Deletes++
		case actUpdate:
			st.Updates++
		default:
			st.Creates++
		}
		if o.err != nil {
			st.OpsFailed++
		}
	}
}

func (st *Stats) finish(b *batch) {
	st.Txns++
	if b.rec.Reverted {
		st.Reverted++
	}
	st.PlanTime += b.rec.PlanTime
	st.ExecTime += b.rec.ExecTime
}
