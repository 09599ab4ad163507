package rendertest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Recorder is a renderer that records its input in its fields.
type Recorder struct {
	T        testing.TB
	Services map[svcmodel.ID]*renderer.ContivService
	NodeIPs  *renderer.IPAddresses
	LocalIPs *renderer.IPAddresses
	Frontend renderer.Interfaces
	Backend  renderer.Interfaces
	// Calls are the calls since the last Take.
	Calls []string
	// Err is the result of every call.
	Err error
	// CheckOthers makes the recorder check otherExistingServices, which takes time with many services.
	CheckOthers bool
}

// New returns a Recorder that checks everything.
func New(t testing.TB) *Recorder {
	return &Recorder{T: t, Services: map[svcmodel.ID]*renderer.ContivService{}, CheckOthers: true}
}

// Take returns the recorded calls and clears them.
func (r *Recorder) Take() []string {
	out := r.Calls
	r.Calls = nil
	return out
}

func (r *Recorder) call(format string, args ...any) error {
	if r.CheckOthers {
		r.Calls = append(r.Calls, fmt.Sprintf(format, args...))
	}
	return r.Err
}

// AddService implements ServiceRendererAPI.
func (r *Recorder) AddService(service *renderer.ContivService) error {
	r.T.Helper()
	if r.Services[service.ID] != nil {
		r.T.Errorf("add of %s, which is there", service.ID)
	}
	r.Services[service.ID] = service
	return r.call("add %s", service.ID)
}

// UpdateService implements ServiceRendererAPI.
func (r *Recorder) UpdateService(old, now *renderer.ContivService, others []*renderer.ContivService) error {
	r.T.Helper()
	if r.Services[now.ID] != old || old == nil {
		r.T.Errorf("update of %s from what it was not", now.ID)
	} else if old.Equal(now) {
		r.T.Errorf("update of %s, which did not change", now.ID)
	}
	r.Services[now.ID] = now
	r.checkOthers(now.ID, others)
	return r.call("update %s", now.ID)
}

// DeleteService implements ServiceRendererAPI.
func (r *Recorder) DeleteService(service *renderer.ContivService, others []*renderer.ContivService) error {
	r.T.Helper()
	if r.Services[service.ID] != service {
		r.T.Errorf("delete of %s, which is not there like this", service.ID)
	}
	r.checkOthers(service.ID, others)
	delete(r.Services, service.ID)
	return r.call("delete %s", service.ID)
}

func (r *Recorder) checkOthers(id svcmodel.ID, others []*renderer.ContivService) {
	r.T.Helper()
	if !r.CheckOthers {
		return
	}
	want := maps.Clone(r.Services)
	delete(want, id)
	if len(others) != len(want) {
		r.T.Errorf("%s: %d other services, there are %d", id, len(others), len(want))
	}
	for _, o := range others {
		if want[o.ID] != o {
			r.T.Errorf("%s: %s is not among the other services like this", id, o.ID)
		}
	}
}

// UpdateNodePortServices implements ServiceRendererAPI.
func (r *Recorder) UpdateNodePortServices(nodeIPs *renderer.IPAddresses, services []*renderer.ContivService) error {
	r.T.Helper()
	if r.NodeIPs.Equal(nodeIPs) {
		r.T.Errorf("node IPs %s did not change", nodeIPs)
	}
	r.NodeIPs = nodeIPs
	r.checkNodePorts(services)
	return r.call("node IPs %s", nodeIPs)
}

// UpdateLocalNodeIPs implements LocalNodeIPsRenderer.
func (r *Recorder) UpdateLocalNodeIPs(local *renderer.IPAddresses, services []*renderer.ContivService) error {
	r.T.Helper()
	if r.LocalIPs.Equal(local) {
		r.T.Errorf("local node IPs %s did not change", local)
	}
	r.LocalIPs = local
	r.checkNodePorts(services)
	return r.call("local node IPs %s", local)
}

func (r *Recorder) checkNodePorts(services []*renderer.ContivService) {
	r.T.Helper()
	n := 0
	for _, s := range r.Services {
		if s.HasNodePort() {
			n++
		}
	}
	for _, s := range services {
		if r.Services[s.ID] != s || !s.HasNodePort() {
			r.T.Errorf("%s is no service with node ports like this", s.ID)
		}
	}
	if n != len(services) {
		r.T.Errorf("%d services with node ports, there are %d", len(services), n)
	}
}

// UpdateLocalFrontendIfs implements ServiceRendererAPI.
func (r *Recorder) UpdateLocalFrontendIfs(old, now renderer.Interfaces) error {
	r.T.Helper()
	r.checkSets("frontend", r.Frontend, old, now)
	r.Frontend = now
	return r.call("frontends %s", now)
}

// UpdateLocalBackendIfs implements ServiceRendererAPI.
func (r *Recorder) UpdateLocalBackendIfs(old, now renderer.Interfaces) error {
	r.T.Helper()
	r.checkSets("backend", r.Backend, old, now)
	r.Backend = now
	return r.call("backends %s", now)
}

func (r *Recorder) checkSets(what string, known, old, now renderer.Interfaces) {
	r.T.Helper()
	if !maps.Equal(known, old) {
		r.T.Errorf("%s interfaces were %s, it was given %s", what, old, known)
	}
	if maps.Equal(old, now) {
		r.T.Errorf("%s interfaces %s did not change", what, now)
	}
}

// Resync implements ServiceRendererAPI.
func (r *Recorder) Resync(ev *renderer.ResyncEventData) error {
	r.T.Helper()
	r.Services = make(map[svcmodel.ID]*renderer.ContivService, len(ev.Services))
	for _, s := range ev.Services {
		if r.Services[s.ID] != nil {
			r.T.Errorf("resync: %s comes twice", s.ID)
		}
		r.Services[s.ID] = s
	}
	r.NodeIPs, r.LocalIPs, r.Frontend, r.Backend = ev.NodeIPs, ev.LocalNodeIPs, ev.FrontendIfs, ev.BackendIfs
	return r.call("resync of %d services", len(ev.Services))
}

// String describes the input that the recorder has received.
func (r *Recorder) String() string {
	out := fmt.Sprintf("nodes %s local %s frontends %s backends %s\n", r.NodeIPs, r.LocalIPs, r.Frontend, r.Backend)
	for _, id := range slices.SortedFunc(maps.Keys(r.Services), svcmodel.ID.Compare) {
		s := r.Services[id]
		out += s.String()
		for _, port := range slices.Sorted(maps.Keys(s.Reachable)) {
			out += fmt.Sprintf(" reachable %s %d", port, s.Reachable[port])
		}
		out += "\n"
	}
	return out
}
