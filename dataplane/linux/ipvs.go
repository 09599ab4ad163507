package intdataplane

import (
	"log/slog"

	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
)

// ipvsCheck detects that kube-proxy's IPVS mode was switched on or off, which needs other rules than those the driver has started with.
type ipvsCheck struct {
	enabled bool // the rules are for kube-ipvs
	restart func()
	log     *slog.Logger
	seen    bool
}

// OnUpdate takes *ifaceState.
func (c *ipvsCheck) OnUpdate(msg any) {
	state, is := msg.(*ifaceState)
	if !is || state.Name != KubeIPVSInterface {
		return
	}
	up := state.State == ifacemonitor.StateUp
	changed := up && !c.enabled || !up && c.enabled && c.seen
	c.seen = c.seen || up
	if !changed {
		return
	}
	c.log.Info("kube-proxy's IPVS mode was switched on or off, which needs other rules", "interface", KubeIPVSInterface, "state", state.State)
	if c.restart != nil {
		c.restart()
	}
}

// CompleteDeferredWork does nothing.
func (c *ipvsCheck) CompleteDeferredWork() error { return nil }
