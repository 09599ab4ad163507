package wiring

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// Record keeps the IDs of our load balancers, and the intents of those that are being made, while the agent does not run. HNS stores nothing with
// a load balancer but its endpoints by which it is ours, and on an L2 bridge it may go on listing one whose endpoints have gone.
type Record interface {
	Load() ([]string, error)
	Store(ids []string) error
}

// RecordFile is a Record in a file of this name, with an ID in each line.
type RecordFile string

// Load implements Record. Without a file there are no IDs.
func (f RecordFile) Load() ([]string, error) {
	raw, err := os.ReadFile(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("IDs of load balancers: %w", err)
	}
	return strings.Fields(string(raw)), nil
}

// Store implements Record. The file has the old IDs or the new ones, whenever the agent ends.
func (f RecordFile) Store(ids []string) error {
	tmp := string(f) + ".tmp"
	text := strings.Join(ids, "\n") + "\n"
	err := errors.Join(os.MkdirAll(filepath.Dir(tmp), 0o700), os.WriteFile(tmp, []byte(text), 0o600))
	if err == nil {
		err = os.Rename(tmp, string(f))
	}
	if err != nil {
		return fmt.Errorf("IDs of load balancers: %w", err)
	}
	return nil
}

// recall makes the load balancers known that were ours when the agent ran before.
func (w *Wiring) recall() {
	if w.balancers != nil {
		return
	}
	w.balancers = map[string]bool{}
	if w.Record == nil {
		return
	}
	ids, err := w.Record.Load()
	if err != nil {
		w.Log.Warn("load balancers of earlier agents are not known: those without endpoints stay", "error", err)
	}
	for _, id := range ids {
		w.balancers[strings.ToUpper(id)] = true
	}
	w.recorded = maps.Clone(w.balancers)
}

// remember records the load balancers that are ours, if they are others than were recorded.
func (w *Wiring) remember() {
	if w.Record == nil || maps.Equal(w.balancers, w.recorded) {
		return
	}
	if err := w.Record.Store(slices.Sorted(maps.Keys(w.balancers))); err != nil {
		w.Log.Warn("the IDs of our load balancers are not recorded: after a restart those without endpoints may stay", "error", err)
		return // the next look at services tries again
	}
	w.recorded = maps.Clone(w.balancers)
}

// oursOf are load balancers of ours, which may be changed and removed: those that lead to endpoints of our network, or lead to nothing and were
// ours before, or lead to nothing and send from our endpoint of an overlay.
func (w *Wiring) oursOf(k *known, list []hcn.LoadBalancer) map[string]bool {
	w.recall()
	before, ours := w.balancers, map[string]bool{}
	w.balancers = map[string]bool{}
	intents := map[string][]string{} // by address and port
	for key, made := range before {
		if !strings.HasPrefix(key, intentPrefix) {
			continue
		}
		begin, _, _ := strings.Cut(key, "=")
		intents[begin] = append(intents[begin], key)
		if !made { // the call may not have ended
			w.balancers[key] = false
		}
	}
	for _, lb := range list {
		led := slices.ContainsFunc(lb.HostComputeEndpoints, func(id string) bool { return k.ours[id] })
		meant := intentFor(intents, lb)
		if led || (before[lb.ID] || meant != "" || k.sendsFromUs(lb)) && k.orphaned(lb) {
			ours[lb.ID] = true
		}
		if ours[lb.ID] || before[lb.ID] { // while our network is not known, it leads to other endpoints
			w.balancers[lb.ID] = true
			delete(w.balancers, meant)
		} else if meant != "" {
			w.balancers[meant] = before[meant]
		}
	}
	return ours
}

// intentPrefix starts the intents in a record: they are words without spaces, as IDs are.
const intentPrefix = "NEW:"

// intent identifies a load balancer that has no ID yet by its address, its port and the endpoints that it leads to.
func intent(lb hcn.LoadBalancer) string {
	return strings.ToUpper(intentPrefix + lbID(lb) + "=" + strings.Join(lb.HostComputeEndpoints, ","))
}

// intend records load balancers before they are made: an agent that ends before it has their IDs finds them by this.
func (w *Wiring) intend(specs map[string]wantedLB) {
	if w.Record == nil {
		return
	}
	for _, want := range specs {
		w.balancers[intent(want.spec)] = false
	}
	w.remember()
}

// intentFor is the intent that a load balancer follows from: one of its address and port, all of whose endpoints are in it; "": none.
func intentFor(intents map[string][]string, lb hcn.LoadBalancer) string {
	if len(lb.PortMappings) != 1 {
		return ""
	}
	for _, key := range intents[strings.ToUpper(intentPrefix+lbID(lb))] {
		_, ids, _ := strings.Cut(key, "=")
		if !slices.ContainsFunc(lb.HostComputeEndpoints, func(id string) bool { return !slices.Contains(strings.Split(ids, ","), id) }) {
			return key
		}
	}
	return ""
}
