package hnsmem

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"sync"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

// Call is a call of HNS.
type Call struct {
	Op string // the method's name: "ApplyACLs"
	ID string // the ID of the object, if the call has one
}

// Writes reports whether the call changes anything.
func (c Call) Writes() bool {
	switch c.Op {
	case "SupportedFeatures", "Features", "ListEndpoints", "ListNetworks", "ListNamespaces", "ListLoadBalancers":
		return false
	}
	return true
}

// Host is a Windows machine's HNS. Its methods may be called from any goroutine.
type Host struct {
	mu         sync.Mutex
	hook       func(Call) error
	calls      []Call
	acl        hns.Features
	features   hcn.Features
	lastID     int
	networks   map[string]*hcn.Network
	endpoints  map[string]*endpoint
	namespaces map[string]*hcn.Namespace
	balancers  map[string]*hcn.LoadBalancer

	keepBalancers bool       // see KeepBalancers
	order         *rand.Rand // see Disorder
}

// endpoint is one object that both versions show.
type endpoint struct {
	hcn.Endpoint // without rules and namespace
	acls         []hns.ACL
	state        hns.State
	containers   []string
}

// New returns a machine with the newest Windows, without any object.
func New() *Host {
	return &Host{acl: hns.Features{AddressLists: true, PortRanges: true, RuleIDs: true, NoHostRulePriority: true},
		features: hcn.Features{RemoteSubnet: true, HostRoute: true, DSR: true, Slash32EndpointPrefixes: true,
			SessionAffinity: true, IPv6DualStack: true, SetPolicy: true, VxlanPort: true, TierAcl: true, NetworkACL: true,
			NestedIpSet: true, ModifyLoadbalancer: true},
		networks: map[string]*hcn.Network{}, endpoints: map[string]*endpoint{}, namespaces: map[string]*hcn.Namespace{},
		balancers: map[string]*hcn.LoadBalancer{}}
}

// SetFeatures selects another version of Windows.
func (h *Host) SetFeatures(acl hns.Features, features hcn.Features) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acl, h.features = acl, features
}

// Hook sets a function that is called at the start of each call, without a lock. The call returns its error, and hangs until it returns. nil:
// nothing.
func (h *Host) Hook(hook func(Call) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hook = hook
}

// Calls returns the calls since the last time.
func (h *Host) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

// begin starts a call: it records the call, runs the hook and locks.
func (h *Host) begin(op, id string) (unlock func(), err error) {
	h.mu.Lock()
	h.calls = append(h.calls, Call{op, id})
	hook := h.hook
	h.mu.Unlock()
	if hook != nil {
		if err := hook(Call{op, id}); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	return h.mu.Unlock, nil
}

func (h *Host) newID() string {
	h.lastID++
	return fmt.Sprintf("%08X-0000-4000-8000-00000000ABCD", h.lastID)
}

// Vanish removes an endpoint without a call, like another program or Windows itself.
func (h *Host) Vanish(endpointID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeEndpoint(endpointID)
}

// KeepBalancers makes load balancers stay unchanged when their endpoints are removed. Microsoft does not document whether Windows does this.
func (h *Host) KeepBalancers() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keepBalancers = true
}

// SetACLs changes an endpoint's rules without a call and without a check, like another program. It returns false if the endpoint does not
// exist.
func (h *Host) SetACLs(endpointID string, acls []hns.ACL) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.endpoints[endpointID]
	if e != nil {
		e.acls = slices.Clone(acls)
	}
	return e != nil
}

// ACLs returns an endpoint's rules.
func (h *Host) ACLs(endpointID string) []hns.ACL {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.endpoints[endpointID]; e != nil {
		return slices.Clone(e.acls)
	}
	return nil
}

// Network returns a network by name.
func (h *Host) Network(name string) (hcn.Network, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.networks {
		if n.Name == name {
			return clone(*n), true
		}
	}
	return hcn.Network{}, false
}

// Pod makes an endpoint of a network, by name, and attaches a container to it, like a container runtime and a CNI plugin. It returns the
// endpoint's ID.
func (h *Host) Pod(network, name string, addrs ...netip.Addr) (string, error) {
	n, is := h.Network(network)
	if !is {
		return "", fmt.Errorf("network %s: %w", network, hcn.ErrNotFound)
	}
	e := hcn.Endpoint{Name: name, HostComputeNetwork: n.ID, SchemaVersion: hcn.V2}
	for _, a := range addrs {
		e.IPConfigurations = append(e.IPConfigurations, hcn.IPConfig{IPAddress: a.String(), PrefixLength: uint8(a.BitLen())})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	made, err := h.createEndpoint(e)
	if err != nil {
		return "", err
	}
	h.endpoints[made.ID].state = hns.Attached
	h.endpoints[made.ID].containers = []string{"container-" + name}
	return made.ID, nil
}

// checkIDs rejects IDs that are not GUIDs as hcsshim does: by an error that does not mean that the object does not exist.
func checkIDs(ids ...string) error {
	for _, id := range ids {
		if !regexp.MustCompile(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id) {
			return fmt.Errorf("invalid ID %q", id)
		}
	}
	return nil
}

// clone returns a deep copy.
func clone[T any](v T) T {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types are ours
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
