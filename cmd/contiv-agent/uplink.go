package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/uplink"
)

// uplinkKey is the key under which the last uplink is stored.
const uplinkKey = "uplink"

// ownStore stores the node's own data.
type ownStore interface {
	LoadOwn(key string) ([]byte, error)
	SaveOwn(key string, value []byte) error
}

// nicMonitor lists and watches the node's NICs.
type nicMonitor interface {
	NICs(ctx context.Context) ([]uplink.NIC, error)
	// WatchNICs reports the NICs whenever they have changed, until ctx ends.
	WatchNICs(ctx context.Context, report func([]uplink.NIC)) error
}

// uplinks finds the NIC that contiv.conf's mainVPPInterface selects. It implements ipnet.Uplinks.
type uplinks struct {
	monitor nicMonitor
	store   ownStore
	log     *slog.Logger

	mu        sync.Mutex
	wanted    uplink.Wanted // guarded by mu: its field Before changes
	reported  string        // guarded by mu; the last result that was logged, for comparison
	callbacks []func()      // guarded by mu
}

// newUplinks leaves a.uplinks nil if contiv.conf does not select the uplink by its properties.
func (a *agent) newUplinks() {
	node := a.conf.Node()
	monitor, ok := a.host.monitor.(nicMonitor)
	if !ok || !node.Uplink.Selects() {
		return
	}
	u := &uplinks{
		monitor: monitor, store: a.db.local, log: a.log.With("component", "uplink"),
		wanted: uplink.Wanted{Uplink: node.Uplink, Others: othersOf(node)},
	}
	before, err := u.store.LoadOwn(uplinkKey)
	if err != nil {
		u.log.Warn("the previous uplink is unknown", "error", err)
	}
	u.wanted.Before = string(before)
	a.uplinks = u
}

// othersOf returns the kernel's names of the NICs that have another role.
func othersOf(node contivconf.NodeConfig) []string {
	var out []string
	for _, o := range node.OtherVPPInterfaces {
		out = append(out, deviceOf(o.InterfaceName))
	}
	return out
}

// deviceOf returns the kernel's name of a NIC that VPP may share with the host.
func deviceOf(name string) string { return strings.TrimPrefix(name, contivconf.AFPacketPrefix) }

// Find implements ipnet.Uplinks.
func (u *uplinks) Find() (string, error) {
	nics, err := u.monitor.NICs(context.Background()) // bounded by the monitor's own timeout
	if err != nil {
		return "", err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	found, err := u.choose(nics)
	if answer := answerOf(found, err); answer != u.reported {
		u.reported = answer
		u.report(found, err)
	}
	return found, err
}

// choose selects the uplink from the NICs. The caller holds mu.
func (u *uplinks) choose(nics []uplink.NIC) (string, error) {
	found, err := uplink.Select(u.wanted, nics)
	return found.Name, err
}

func answerOf(name string, err error) string {
	if err != nil {
		return "!" + err.Error()
	}
	return name
}

// report logs a changed result, and stores the NIC for the next agent. The caller holds mu.
func (u *uplinks) report(found string, err error) {
	if err != nil {
		u.log.Warn("this node has no uplink: it cannot reach other nodes, and new pods wait", "error", err)
		return
	}
	u.log.Info("uplink selected", "nic", found, "selectedBy", u.wanted.Uplink.String())
	if found == u.wanted.Before {
		return
	}
	u.wanted.Before = found
	if err := u.store.SaveOwn(uplinkKey, []byte(found)); err != nil {
		u.log.Warn("the selected uplink could not be stored; if a second NIC matches, the next agent cannot select one of them", "error", err)
	}
}

// Watch implements ipnet.Uplinks.
func (u *uplinks) Watch(callback func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.callbacks = append(u.callbacks, callback)
}

// run is the job that runs the callbacks when Find would return another result than last time.
func (u *uplinks) run(ctx context.Context) error {
	return u.monitor.WatchNICs(ctx, func(nics []uplink.NIC) {
		u.mu.Lock()
		name, err := u.choose(nics)
		changed, callbacks := u.reported != "" && answerOf(name, err) != u.reported, u.callbacks
		u.mu.Unlock()
		if !changed {
			return
		}
		for _, call := range callbacks {
			call()
		}
	})
}
