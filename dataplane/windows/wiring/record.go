package wiring

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/windows/hcn"
)

// Record stores the IDs of our load balancers, and the intents for those that are being made, while the agent does not run. In HNS only the
// endpoints of a load balancer show that it is ours, and on an L2 bridge HNS may still list one whose endpoints have been removed. atomicfile.Lines is one.
type Record interface {
	Load() ([]string, error)
	Store(ids []string) error
}

// recall loads the load balancers of the previous agent. Nothing is changed before they are loaded, because the next write of the record would
// lose them.
func (w *Wiring) recall() error {
	if w.balancers != nil {
		return nil
	}
	var ids []string
	if w.Record != nil {
		var err error
		if ids, err = w.Record.Load(); err != nil {
			return scheduler.Retry(fmt.Errorf("services do not change, because the record of load balancers cannot be read: %w; "+
				"make the file readable, or remove it (load balancers without a service may stay then)", err))
		}
	}
	w.balancers = map[string]bool{}
	for _, id := range ids {
		w.balancers[strings.ToUpper(id)] = true
	}
	w.recorded = maps.Clone(w.balancers)
	return nil
}

// storeRecord records our load balancers, if they differ from the recorded ones.
func (w *Wiring) storeRecord() error {
	if w.Record == nil || maps.Equal(w.balancers, w.recorded) {
		return nil
	}
	if err := w.Record.Store(slices.Sorted(maps.Keys(w.balancers))); err != nil {
		return scheduler.Retry(fmt.Errorf("the load balancers of services cannot be recorded: %w; make the directory writable, and free space on its disk", err))
	}
	w.recorded = maps.Clone(w.balancers)
	return nil
}

// oursOf returns our load balancers, which may be changed and removed: those with endpoints of our network, and those without endpoints that
// were recorded as ours or send from our endpoint of an overlay.
func (w *Wiring) oursOf(k *known, has serviceState) map[string]bool {
	before, ours := w.balancers, map[string]bool{}
	w.balancers = map[string]bool{}
	intents := map[string][]string{} // by address and port
	for key, made := range before {
		if !strings.HasPrefix(key, intentPrefix) {
			continue
		}
		begin, _, _ := strings.Cut(key, "=")
		intents[begin] = append(intents[begin], key)
		if !made && !has.settled { // the call may not have ended
			w.balancers[key] = false
		}
	}
	for _, lb := range has.balancers {
		led := slices.ContainsFunc(lb.HostComputeEndpoints, func(id string) bool { return k.ours[id] })
		meant := intentFor(intents, lb)
		if led || (before[lb.ID] || meant != "" || k.sendsFromUs(lb)) && k.orphaned(lb) {
			ours[lb.ID] = true
		}
		if ours[lb.ID] || before[lb.ID] { // while our network is not known, it has other endpoints
			w.balancers[lb.ID] = true
			delete(w.balancers, meant)
		} else if meant != "" {
			w.balancers[meant] = before[meant]
		}
	}
	return ours
}

// intentPrefix is the prefix of intents in a record: like IDs, they are words without spaces.
const intentPrefix = "NEW:"

// intent identifies a load balancer that has no ID yet by its address, its port and its endpoints.
func intent(lb hcn.LoadBalancer) string {
	return strings.ToUpper(intentPrefix + lbID(lb) + "=" + strings.Join(lb.HostComputeEndpoints, ","))
}

// intend records load balancers before they are made. If an agent ends before it has stored their IDs, the next one finds them by the intents.
// After an error none may be made.
func (w *Wiring) intend(specs map[string]wantedLB) error {
	if w.Record == nil {
		return nil
	}
	for _, want := range specs {
		w.balancers[intent(want.spec)] = false
	}
	err := w.storeRecord()
	if err != nil {
		for _, want := range specs {
			delete(w.balancers, intent(want.spec))
		}
	}
	return err
}

// intentFor returns the intent of a load balancer: one with its address and port that includes all of its endpoints; "": none.
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
