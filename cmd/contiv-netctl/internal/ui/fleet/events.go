package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/internal/diag"
)

const (
	historyPath = "/controller/event-history"
	// keptEvents is how many events of a node are shown.
	keptEvents = 200
	// firstEvents is how many events the first request returns.
	firstEvents = 100
	// maxOps is how many operations of a transaction are shown; a resync of a large node has 100,000.
	maxOps = 2000
)

// record is an event in the agent's history (plugins/controller EventRecord).
type record struct {
	SeqNum          uint64
	ProcessingStart time.Time
	ProcessingEnd   time.Time
	FollowUpTo      uint64
	Name            string
	Description     string
	Method          string
	Handlers        []struct {
		Handler string
		Revert  bool
		Change  string
		Error   string
	}
	TxnError string
	Error    string
	Txn      *transaction
}

// transaction is a dataplane/txn.Record as JSON.
type transaction struct {
	SeqNum   uint64
	PlanTime time.Duration
	ExecTime time.Duration
	Planned  []operation
	Executed []operation
	Pending  []string
	Reverted bool
	Failed   []string
}

type operation struct {
	Action string
	Key    string
	Err    string
	Took   time.Duration
}

// EventList holds what a node's agent has handled, the newest first.
type EventList struct {
	Node   string  `json:"node"`
	Nodes  []Name  `json:"nodes"`
	Events []Event `json:"events"`
}

// Name is a node that the user can select.
type Name struct {
	Name string `json:"name"`
}

// Event is one event of a list.
type Event struct {
	Number     uint64    `json:"number"`
	At         time.Time `json:"at"`
	TookMs     float64   `json:"tookMs"`
	Name       string    `json:"name"`
	Text       string    `json:"text"`
	Method     string    `json:"method"`
	FollowUpTo uint64    `json:"followUpTo,omitempty"`
	Error      string    `json:"error,omitempty"`
	// Created, Changed, Deleted and Failed count operations.
	Created int `json:"created"`
	Changed int `json:"changed"`
	Deleted int `json:"deleted"`
	Failed  int `json:"failed"`
}

// EventDetail is one event with its effects.
type EventDetail struct {
	Event
	Node     string    `json:"node"`
	Handlers []Handler `json:"handlers"`
	// Changes is the transaction as a diff; More counts operations that are not shown.
	Changes []Change `json:"changes"`
	More    int      `json:"more"`
	// Pending lists values that wait for another one.
	Pending  []Change `json:"pending"`
	Reverted bool     `json:"reverted"`
	PlanMs   float64  `json:"planMs"`
	ExecMs   float64  `json:"execMs"`
}

// Handler is what one plugin did with the event.
type Handler struct {
	Name   string `json:"name"`
	Revert bool   `json:"revert,omitempty"`
	Change string `json:"change,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Change is one line of a diff.
type Change struct {
	Action string  `json:"action"` // create, update, recreate, delete
	Kind   string  `json:"kind"`
	Name   string  `json:"name"`
	Key    string  `json:"key"`
	TookMs float64 `json:"tookMs,omitempty"`
	Error  string  `json:"error,omitempty"`
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (r *record) brief() Event {
	e := Event{
		Number: r.SeqNum, At: r.ProcessingStart, TookMs: ms(r.ProcessingEnd.Sub(r.ProcessingStart)), Name: r.Name, Text: r.Description,
		Method: r.Method, FollowUpTo: r.FollowUpTo, Error: cmp.Or(r.Error, r.TxnError),
	}
	if r.Txn == nil {
		return e
	}
	for i := range r.Txn.Executed {
		switch op := &r.Txn.Executed[i]; {
		case op.Err != "":
			e.Failed++
		case op.Action == "create":
			e.Created++
		case op.Action == "delete":
			e.Deleted++
		default:
			e.Changed++
		}
	}
	return e
}

func (r *record) detail(node string) EventDetail {
	d := EventDetail{Event: r.brief(), Node: node, Handlers: []Handler{}, Changes: []Change{}, Pending: []Change{}}
	for _, h := range r.Handlers {
		d.Handlers = append(d.Handlers, Handler{h.Handler, h.Revert, h.Change, h.Error})
	}
	if r.Txn == nil {
		return d
	}
	d.Reverted, d.PlanMs, d.ExecMs = r.Txn.Reverted, ms(r.Txn.PlanTime), ms(r.Txn.ExecTime)
	for i := range r.Txn.Executed {
		if i == maxOps {
			d.More = len(r.Txn.Executed) - maxOps
			break
		}
		op := &r.Txn.Executed[i]
		kind, name := readable(op.Key)
		d.Changes = append(d.Changes, Change{op.Action, kind, name, op.Key, ms(op.Took), op.Err})
	}
	for _, key := range r.Txn.Pending[:min(len(r.Txn.Pending), maxOps)] {
		kind, name := readable(key)
		d.Pending = append(d.Pending, Change{Kind: kind, Name: name, Key: key})
	}
	return d
}

// eventLogs holds the last events of the nodes whose events are displayed. Only new events are requested.
type eventLogs struct {
	mu    sync.Mutex
	nodes map[string]*eventLog // guarded by mu
}

type eventLog struct {
	started string // start time of the agent: a restarted agent counts from 1
	last    uint64
	queried time.Time
	events  []Event // the newest first
}

// Events returns what a node's agent has handled; of the first node, if none is named.
func (f *Fleet) Events(ctx context.Context, node string) (EventList, error) {
	agent, err := f.agent(ctx, node)
	if err != nil {
		return EventList{}, err
	}
	c, err := f.connect(ctx, false)
	if err != nil {
		return EventList{}, err
	}
	out := EventList{Node: agent.Name, Nodes: []Name{}}
	for _, name := range c.Names() {
		out.Nodes = append(out.Nodes, Name{name})
	}
	out.Events, err = f.events.of(ctx, agent)
	return out, err
}

// of requests the events that are not stored yet from an agent, at most once per half of the shortest interval.
func (l *eventLogs) of(ctx context.Context, agent *client.Agent) ([]Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	log := l.nodes[agent.Name]
	if log != nil && time.Since(log.queried) < leastPace/2 {
		return log.events, nil
	}
	var info diag.AgentInfo
	if err := agent.Get(ctx, diag.AgentPath, &info); err != nil {
		return nil, err
	}
	if log == nil || log.started != info.Started {
		log = &eventLog{started: info.Started, events: []Event{}}
		l.nodes[agent.Name] = log
	}
	query := "last=" + strconv.Itoa(firstEvents)
	if log.last > 0 {
		query = "from=" + strconv.FormatUint(log.last+1, 10) + "&last=" + strconv.Itoa(keptEvents)
	}
	var records []record
	if err := agent.Get(ctx, historyPath+"?"+query, &records); err != nil {
		return nil, err
	}
	events := make([]Event, 0, len(records)+len(log.events))
	for i := range slices.Backward(records) {
		events = append(events, records[i].brief())
		log.last = max(log.last, records[i].SeqNum)
	}
	events = append(events, log.events...)
	log.events, log.queried = events[:min(len(events), keptEvents)], time.Now()
	return log.events, nil
}

// Event returns one event of a node with its transaction.
func (f *Fleet) Event(ctx context.Context, node, number string) (EventDetail, error) {
	if _, err := strconv.ParseUint(number, 10, 64); err != nil {
		return EventDetail{}, &BadRequest{Err: fmt.Errorf("event %q: a number is needed", number)}
	}
	agent, err := f.agent(ctx, node)
	if err != nil {
		return EventDetail{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var r record
	if err := agent.Get(ctx, historyPath+"?seq-num="+number, &r); err != nil {
		return EventDetail{}, err
	}
	return r.detail(agent.Name), nil
}

// Value is the current value of a key on a node.
type Value struct {
	Key     string          `json:"key"`
	State   string          `json:"state"` // empty: it is not desired any more
	Desired json.RawMessage `json:"desired,omitempty"`
	Applied json.RawMessage `json:"applied,omitempty"`
}

// Value requests a value from a node.
func (f *Fleet) Value(ctx context.Context, node, key string) (Value, error) {
	if key == "" || strings.ContainsAny(key, "\r\n") {
		return Value{}, &BadRequest{Err: errors.New("the key of a value is needed")}
	}
	agent, err := f.agent(ctx, node)
	if err != nil {
		return Value{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	values := []Value{}
	if err := agent.Get(ctx, "/scheduler/dump?key="+url.QueryEscape(key), &values); err != nil {
		return Value{}, err
	}
	if len(values) == 0 {
		return Value{Key: key}, nil
	}
	return values[0], nil
}
