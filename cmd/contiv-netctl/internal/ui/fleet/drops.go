package fleet

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/statscollector"
)

// Drops holds the packets that the nodes drop.
type Drops struct {
	NextMs int `json:"nextMs"`
	// Counters are the dataplanes' drop counters with their reasons; those that are rising come first.
	Counters []Drop `json:"counters"`
	// Interfaces lists pods and interfaces whose packets were dropped.
	Interfaces []Drop `json:"interfaces"`
	// Denied lists the connections that network policy has denied within the last hour, the newest first.
	Denied []Denied `json:"denied"`
	// Missing lists nodes whose counters are not known, with the reason.
	Missing []Problem `json:"missing"`
}

// deniedPath lists what network policy has denied (plugins/policy).
const deniedPath = "/contiv/v1/policy/drops"

// maxDenied is how many denied connections are shown.
const maxDenied = 100

// Denied is a connection that network policy has denied.
type Denied struct {
	Node      string    `json:"node"`
	Time      time.Time `json:"time"`  // of the newest packet
	Count     uint64    `json:"count"` // packets that were reported; the dataplane limits reports
	Direction string    `json:"direction"`
	Pod       string    `json:"pod"`
	Source    string    `json:"source"`
	SourcePod string    `json:"sourcePod,omitempty"`
	Dest      string    `json:"dest"`
	DestPod   string    `json:"destPod,omitempty"`
	Protocol  string    `json:"protocol"`
	Port      uint16    `json:"port,omitempty"`
	Policy    string    `json:"policy,omitempty"`
	Rule      string    `json:"rule,omitempty"`
	Because   string    `json:"because"`
}

// Drop is one counter of a node.
type Drop struct {
	Node   string `json:"node"`
	Where  string `json:"where"`
	Reason string `json:"reason"`
	Means  string `json:"means,omitempty"`
	Count  uint64 `json:"count"` // since the dataplane has started
	// Recent is the increase within the last minute, as far as this page has watched.
	Recent uint64 `json:"recent"`
}

// window is the period of Recent.
const window = time.Minute

// watched stores the values of counters within the last window.
type watched struct {
	mu   sync.Mutex
	seen map[dropKey][]count // guarded by mu; the oldest first
}

type dropKey struct{ node, where, reason string }

type count struct {
	at time.Time
	n  uint64
}

// rise stores a counter and returns its increase within the window. A counter that is seen for the first time has not risen, and one that is
// smaller than before has restarted.
func (w *watched) rise(now time.Time, key dropKey, n uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[dropKey][]count{}
	}
	list := w.seen[key]
	if len(list) > 0 && list[len(list)-1].n > n {
		list = nil
	}
	list = append(list, count{now, n})
	for len(list) > 1 && now.Sub(list[0].at) > window {
		list = list[1:]
	}
	w.seen[key] = list
	return n - list[0].n
}

// begin marks a node's counters as known: a counter that appears later has risen from zero.
func (w *watched) begin(now time.Time, node string, list []diag.DropCounter) {
	w.mu.Lock()
	_, known := w.seen[dropKey{node: node}]
	w.mu.Unlock()
	if known {
		for _, c := range list {
			key := dropKey{node, c.Where, c.Reason}
			w.mu.Lock()
			_, seen := w.seen[key]
			w.mu.Unlock()
			if !seen {
				w.rise(now, key, 0)
			}
		}
	}
	w.rise(now, dropKey{node: node}, 0)
}

type dropAnswer struct {
	drops   diag.DropsReply
	traffic statscollector.TrafficReport
	denied  []Denied
}

func queryDrops(ctx context.Context, a *client.Agent) (d dropAnswer, err error) {
	if err := a.Get(ctx, diag.DropsPath, &d.drops); err != nil {
		return d, err
	}
	if err := a.Get(ctx, deniedPath, &d.denied); err != nil && !absent(err) {
		return d, err
	}
	err = a.Get(ctx, statscollector.TrafficPath, &d.traffic)
	return d, err
}

// Drops returns what the nodes have dropped lately.
func (f *Fleet) Drops(ctx context.Context) (Drops, error) {
	d, next, err := f.losses.get(ctx, func(ctx context.Context) (Drops, error) {
		c, err := f.connect(ctx, false)
		if err != nil {
			return Drops{}, err
		}
		return f.dropped(time.Now(), client.Each(ctx, c, nil, queryDrops)), nil
	})
	d.NextMs = next
	return d, err
}

// dropped joins the nodes' counters.
func (f *Fleet) dropped(now time.Time, answers []client.Answer[dropAnswer]) Drops {
	d := Drops{Counters: []Drop{}, Interfaces: []Drop{}, Denied: []Denied{}, Missing: []Problem{}}
	for _, a := range answers {
		if a.Err != nil {
			text := state.NoAnswer(a.Err)
			if absent(a.Err) {
				text = "its agent is older than this command and has no such counters"
			} else if !client.IsUnreachable(a.Err) {
				text = a.Err.Error()
			}
			d.Missing = append(d.Missing, Problem{a.Node, state.Problem{Text: text}})
			continue
		}
		for _, one := range a.Value.denied {
			one.Node = a.Node
			d.Denied = append(d.Denied, one)
		}
		f.watch.begin(now, a.Node, a.Value.drops.Counters)
		for _, c := range a.Value.drops.Counters {
			d.Counters = append(d.Counters, Drop{a.Node, c.Where, c.Reason, c.Means, c.Count, f.watch.rise(now, dropKey{a.Node, c.Where,
				c.Reason}, c.Count)})
		}
		for _, t := range a.Value.traffic.Interfaces {
			where := t.Interface
			if t.Pod != "" {
				p := state.Pod{Namespace: t.Namespace, Name: t.Pod}
				where = "pod " + p.ID()
			}
			for reason, n := range map[string]uint64{"dropped": t.Drops, "errors": t.Errors, "no buffer": t.NoBuffer} {
				if n > 0 {
					d.Interfaces = append(d.Interfaces, Drop{Node: a.Node, Where: where, Reason: reason, Count: n,
						Recent: f.watch.rise(now, dropKey{a.Node, "interface " + where, reason}, n)})
				}
			}
		}
	}
	slices.SortStableFunc(d.Denied, func(a, b Denied) int { return b.Time.Compare(a.Time) })
	d.Denied = d.Denied[:min(len(d.Denied), maxDenied)]
	for _, list := range [][]Drop{d.Counters, d.Interfaces} {
		slices.SortFunc(list, func(a, b Drop) int {
			return cmp.Or(cmp.Compare(b.Recent, a.Recent), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Where, b.Where),
				cmp.Compare(a.Reason, b.Reason))
		})
	}
	return d
}
