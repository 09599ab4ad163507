package vpp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// nicsTimeout is the timeout of a dump of VPP's interfaces.
const nicsTimeout = 5 * time.Second

// nicTypes returns the device classes of VPP that stand for hardware (sw_interface_details: interface_dev_type). TAPs share the class of
// VirtIO NICs and are distinguished by their names.
func nicTypes() []string {
	return []string{
		"dpdk", "RDMA interface", "VMXNET3 interface", "Adaptive Virtual Function (AVF) interface",
		"Infrastructure Data Path Function (IDPF) interface", "iavf", "ena", "octeon", "mvpp2",
	}
}

// nicsKey is the key of the NICs' names in the NICStore.
const nicsKey = "vpp-nics"

// NICStore stores data of the node itself.
type NICStore interface {
	// LoadOwn returns a value; nil if there is none.
	LoadOwn(key string) ([]byte, error)
	SaveOwn(key string, value []byte) error
}

// NICs reports the NICs that VPP has from its start-up configuration. They do not change while a VPP process runs.
type NICs struct {
	conn  *conn.Conn
	dumps sync.Mutex // held during a dump, which uses lane
	lane  *conn.Lane
	store NICStore // nil: nothing is stored beyond the life of the agent
	log   *slog.Logger

	mu        sync.Mutex
	boot      string // State.BootID of the VPP process whose NICs are in names; "": none yet
	names     []string
	callbacks []func()
	reported  []string // last result of Names
	requested bool
	wake      chan struct{}
}

// NewNICs returns a NICs that sends no requests before Names or Run.
func NewNICs(c *conn.Conn) *NICs {
	n := &NICs{conn: c, lane: c.Lane(), wake: make(chan struct{}, 1)}
	c.OnChange(func(s conn.State) {
		if s.Connected() {
			select {
			case n.wake <- struct{}{}:
			default:
			}
		}
	})
	return n
}

// UseStore stores the result, so that an agent that starts while VPP is disconnected reports what the previous agent found. Call it before
// Names and Run.
func (n *NICs) UseStore(store NICStore, log *slog.Logger) {
	n.store, n.log = store, log.With("component", "vpp-nics")
	data, err := store.LoadOwn(nicsKey)
	if err == nil && data != nil {
		err = json.Unmarshal(data, &n.names)
	}
	if err != nil {
		n.log.Warn("the NICs of VPP are unknown until VPP is connected", "error", err)
	}
}

// save stores the result for the next agent.
func (n *NICs) save(names []string) {
	if n.store == nil {
		return
	}
	data, err := json.Marshal(names)
	if err == nil {
		err = n.store.SaveOwn(nicsKey, data)
	}
	if err != nil {
		n.log.Warn("the list of VPP's NICs could not be stored; an agent that starts while VPP is disconnected does not have it", "error", err)
	}
}

// Names returns the NICs by index. It queries each VPP process once. While VPP is disconnected it returns the last result, which may be
// empty; Watch reports when that turns out to be wrong.
func (n *NICs) Names() ([]string, error) {
	names, err := n.readNICs()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requested, n.reported = true, names
	return slices.Clone(names), err
}

// Watch registers a callback that is called, from any goroutine, when the last result of Names is no longer correct.
func (n *NICs) Watch(callback func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.callbacks = append(n.callbacks, callback)
}

// Run checks the result after each connection to VPP, until ctx ends.
func (n *NICs) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.wake:
		}
		for _, call := range n.changed() {
			call()
		}
	}
}

func (n *NICs) changed() []func() {
	names, err := n.readNICs()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil || !n.requested || slices.Equal(names, n.reported) {
		return nil
	}
	return slices.Clone(n.callbacks)
}

// readNICs queries VPP if this VPP process has not been queried yet.
func (n *NICs) readNICs() ([]string, error) {
	state := n.conn.State()
	n.mu.Lock()
	boot, names := n.boot, n.names
	n.mu.Unlock()
	if !state.Connected() || boot == state.BootID {
		return names, nil
	}
	found, err := n.dump()
	if err != nil {
		if errors.Is(err, conn.ErrDisconnected) {
			return names, nil
		}
		return names, fmt.Errorf("list VPP's NICs: %w", err)
	}
	if !slices.Equal(found, names) {
		n.save(found)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.boot, n.names = state.BootID, found
	return found, nil
}

func (n *NICs) dump() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), nicsTimeout)
	defer cancel()
	n.dumps.Lock()
	defer n.dumps.Unlock()
	var out []string
	var failed error
	conn.Dump(n.lane, &interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)},
		func(d *interfaces.SwInterfaceDetails) {
			if isNIC(d) {
				out = append(out, d.InterfaceName)
			}
		}, func(err error) { failed = err })
	n.lane.Flush(ctx)
	return out, failed
}

func isNIC(d *interfaces.SwInterfaceDetails) bool {
	if d.Type != interface_types.IF_API_TYPE_HARDWARE || d.SupSwIfIndex != uint32(d.SwIfIndex) {
		return false
	}
	return slices.Contains(nicTypes(), d.InterfaceDevType) ||
		d.InterfaceDevType == "virtio" && strings.HasPrefix(d.InterfaceName, "virtio-")
}
