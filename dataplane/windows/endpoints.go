package windataplane

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
	"contiv.dev/vswitch/internal/ipaddr"
)

var (
	// ErrorUnknownEndpoint means that HNS has no endpoint with a workload's addresses (yet).
	ErrorUnknownEndpoint = errors.New("Endpoint could not be found") //nolint:staticcheck // the text is documented
	// ErrorUpdateFailed means that HNS rejected the rules of an endpoint.
	ErrorUpdateFailed = errors.New("Endpoint update failed") //nolint:staticcheck // the text is documented
)

// listTTL is how long the list of HNS's endpoints is valid.
const listTTL = 10 * time.Minute

// hostAddresses is an internal message: the node's own addresses.
type hostAddresses struct{ addrs []netip.Addr }

// lookAgain is an internal message: HNS may have the missing endpoints now.
type lookAgain struct{}

// endpointManager keeps the access control lists of workloads' endpoints in HNS. An endpoint whose rules cannot be rendered is closed, without
// effect on the others. An endpoint of our networks that a container uses and that belongs to no announced workload is closed.
type endpointManager struct {
	api       hns.API
	calls     *hnscall.Caller
	clock     driver.Clock
	networks  *regexp.Regexp
	families  []family
	exempt    nodeExempt
	policies  *policyManager
	render    renderer
	requested bool // render.features have been read from HNS
	log       *slog.Logger
	progress  func()

	workloads map[epstate.WorkloadID]*workload
	dirty     map[epstate.WorkloadID]bool // workloads to process
	changed   map[listKey]bool            // lists whose users must be processed
	node      []netip.Addr

	relist    bool // the endpoints of HNS must be listed again
	listed    time.Time
	endpoints map[string]*known // of our networks, in use; by HNS's ID
	byAddr    map[netip.Addr][]string
	owners    map[string]epstate.WorkloadID // the workload that an endpoint in HNS belongs to

	unknown    map[epstate.WorkloadID]bool // HNS has no endpoint with their addresses
	conditions map[any]Condition           // by epstate.WorkloadID and epstate.HostID
	strays     map[string]error            // endpoints without a workload that could not be closed
	writes     int
}

// known is an endpoint of HNS.
type known struct {
	hns.Endpoint
	has    string // the signature of its list in HNS; "?" if it is not known
	wrote  string // the signature that we wrote last
	echo   string // the signature that HNS lists for what we wrote, if it lists it in another form
	verify bool   // has must be read again, to set echo
}

const unsure = "?"

// OnUpdate handles *proto.WorkloadEndpointUpdate, *proto.WorkloadEndpointRemove, and internal messages.
func (m *endpointManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.WorkloadEndpointUpdate:
		w := newWorkload(msg, m.exempt)
		if len(m.families) == 1 {
			w.addrs = slices.DeleteFunc(w.addrs, netip.Addr.Is6)
			if len(w.addrs) == 0 && w.fault == nil {
				w.fault = errors.New("the endpoint has no IPv4 address, and IPv6Enabled is not set")
			}
		}
		m.workloads[w.id] = w
		m.dirty[w.id], m.relist = true, true
	case *proto.WorkloadEndpointRemove:
		id := epstate.WorkloadIDOf(msg.GetId())
		if m.workloads[id] == nil {
			m.log.Warn("removal of an endpoint that is not known is ignored", "endpoint", id.String())
			return
		}
		delete(m.workloads, id)
		delete(m.conditions, id)
		delete(m.unknown, id)
		delete(m.dirty, id)
		m.relist = true
	case *proto.HostEndpointUpdate:
		m.conditions[epstate.HostID(msg.GetId().GetEndpointId())] = Condition{Status: epstate.Error,
			Reason: "HNS has no rules for the node's own interfaces: host endpoints are not available on Windows"}
	case *proto.HostEndpointRemove:
		delete(m.conditions, epstate.HostID(msg.GetId().GetEndpointId()))
	case *hostAddresses:
		addrs := slices.DeleteFunc(slices.Clone(msg.addrs), func(a netip.Addr) bool {
			return !slices.Contains(m.families, familyOf(ipaddr.HostPrefix(a))) // HNS may reject a list with this address
		})
		if slices.Equal(m.node, addrs) {
			return
		}
		m.node = addrs
		m.all()
	case *callEnded:
		m.relist = true
	case *lookAgain:
		m.relist = m.relist || len(m.unknown) > 0
	}
}

// all marks all workloads for processing.
func (m *endpointManager) all() {
	for id := range m.workloads {
		m.dirty[id] = true
	}
}

// resync requests a full comparison with HNS.
func (m *endpointManager) resync() {
	m.relist = true
	m.all()
}

func (m *endpointManager) listChanged(key listKey) { m.changed[key] = true }

// CompleteDeferredWork writes what has changed. ErrorUnknownEndpoint and ErrorUpdateFailed concern single endpoints, and all others have been
// written; any other error concerns HNS as a whole.
func (m *endpointManager) CompleteDeferredWork() error {
	m.collect()
	if len(m.dirty)+len(m.unknown)+len(m.strays) == 0 && !m.relist {
		return nil
	}
	if !m.requested {
		features, err := hnscall.Do(m.calls, "features", func() (hns.Features, error) { return m.api.SupportedFeatures(), nil })
		if err != nil {
			return err
		}
		// An empty set means an old Windows or an HNS that did not respond; hcsshim does not distinguish them. So HNS is queried again.
		m.requested = features != hns.Features{}
		if features != m.render.features {
			m.render.features = features
			m.all()
		}
	}
	if m.relist || len(m.unknown)+len(m.strays) > 0 || m.clock.Now().Sub(m.listed) >= listTTL {
		if err := m.list(); err != nil {
			return err
		}
	}
	return m.write()
}

// collect marks the users of the lists that have changed.
func (m *endpointManager) collect() {
	if len(m.changed) == 0 {
		return
	}
	for id, w := range m.workloads {
		if w.uses(m.changed) {
			m.dirty[id] = true
		}
	}
	clear(m.changed)
}

// list requests the endpoints of HNS.
func (m *endpointManager) list() error {
	list, err := hnscall.Do(m.calls, "list of endpoints", m.api.ListEndpoints)
	if err != nil {
		return fmt.Errorf("HNS endpoints: %w", err)
	}
	before := m.endpoints
	m.endpoints, m.byAddr = map[string]*known{}, map[netip.Addr][]string{}
	for _, e := range list {
		if e.Remote || !e.InUse() || !m.networks.MatchString(e.NetworkName) {
			continue
		}
		now := &known{Endpoint: e, has: signature(e.ACLs)}
		if e.Unreadable > 0 {
			now.has = unsure
		}
		if was := before[e.ID]; was != nil {
			now.wrote, now.echo, now.verify = was.wrote, was.echo, was.verify
		}
		m.endpoints[e.ID] = now
		for _, a := range e.Addresses() {
			m.byAddr[a] = append(m.byAddr[a], e.ID)
		}
	}
	m.listed, m.relist = m.clock.Now(), false
	m.own()
	return nil
}

// own determines the workload of each endpoint. If several workloads have the same address, the one with the lowest ID owns the endpoint. It
// marks workloads whose endpoints have changed.
func (m *endpointManager) own() {
	before := m.owners
	m.owners = map[string]epstate.WorkloadID{}
	for _, id := range slices.SortedFunc(maps.Keys(m.workloads), epstate.WorkloadID.Compare) {
		for _, ep := range m.found(m.workloads[id]) {
			if _, taken := m.owners[ep]; !taken {
				m.owners[ep] = id
			}
		}
	}
	for ep, id := range m.owners {
		if was, had := before[ep]; !had || was != id {
			m.dirty[id] = true
		}
	}
	for ep, id := range before {
		if _, stays := m.owners[ep]; !stays && m.workloads[id] != nil {
			m.dirty[id] = true
		}
	}
	for id := range m.unknown {
		m.dirty[id] = true
	}
	for ep, e := range m.endpoints {
		if id, owned := m.owners[ep]; owned && e.has != e.wrote && e.has != e.echo {
			m.dirty[id] = true // another program has written its list
		}
	}
}

// found returns the IDs of the endpoints that have an address of a workload.
func (m *endpointManager) found(w *workload) []string {
	var ids []string
	for _, a := range w.addrs {
		for _, id := range m.byAddr[a] {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// write writes the lists of the marked workloads, and of the endpoints without a workload.
func (m *endpointManager) write() error {
	var errs []error
	made := map[string]rendered{}
	for _, id := range slices.SortedFunc(maps.Keys(m.dirty), epstate.WorkloadID.Compare) {
		if w := m.workloads[id]; w != nil {
			errs = append(errs, m.program(w, made))
			m.progress()
		}
	}
	m.strays = map[string]error{}
	for _, ep := range slices.Sorted(maps.Keys(m.endpoints)) {
		if _, owned := m.owners[ep]; owned {
			continue
		}
		if err := m.apply(ep, m.closed(Condition{})); err != nil && !errors.Is(err, hns.ErrNotFound) {
			m.strays[ep] = err
			errs = append(errs, fmt.Errorf("endpoint %s of no workload: %w", ep, err))
		}
	}
	return errors.Join(append(errs, m.verifyEchoes())...)
}

// program writes a workload's lists. It unmarks the workload if the lists have been written.
func (m *endpointManager) program(w *workload, made map[string]rendered) error {
	found := m.found(w)
	own := slices.DeleteFunc(slices.Clone(found), func(ep string) bool { return m.owners[ep] != w.id })
	delete(m.unknown, w.id)
	switch {
	case len(found) == 0 && len(w.addrs) > 0:
		m.unknown[w.id] = true
		m.conditions[w.id] = Condition{Status: epstate.Down, Reason: fmt.Sprintf("HNS has no endpoint with an address of %v in use", w.addrs)}
		delete(m.dirty, w.id)
		return fmt.Errorf("%s: %w", w.id, ErrorUnknownEndpoint)
	case len(found) > 0 && len(own) == 0:
		m.conditions[w.id] = Condition{Status: epstate.Down,
			Reason: fmt.Sprintf("its addresses belong to endpoint %s, which has the lower ID", m.owners[found[0]])}
		delete(m.dirty, w.id)
		return nil
	}
	want := m.desired(w, made)
	for _, ep := range own {
		if err := m.apply(ep, want); err != nil {
			if errors.Is(err, hns.ErrNotFound) {
				m.unknown[w.id] = true // the endpoint was removed: the next pass lists the endpoints again
				err = fmt.Errorf("%w: %w", ErrorUnknownEndpoint, err)
			}
			m.conditions[w.id] = Condition{Status: epstate.Error, Reason: err.Error()}
			return fmt.Errorf("%s: %w", w.id, err)
		}
	}
	m.conditions[w.id] = want.condition
	delete(m.dirty, w.id)
	return nil
}
