package vpp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// pluginKey is where the NICStore has whether VPP had our plugin.
const pluginKey = "vpp-plugin"

// Plugin tells whether VPP has our own plugin. That stays the same as long as that VPP runs.
type Plugin struct {
	conn  *conn.Conn
	log   *slog.Logger
	store NICStore // nil: nothing outlives the agent
	wake  chan struct{}

	mu        sync.Mutex
	session   uint64 // of which present is
	present   bool
	told      bool // what Present answered last
	asked     bool
	callbacks []func()
}

// NewPlugin asks nothing before Present or Run. Before a VPP is connected for the first time its answer is yes: what it decides must
// rather wait than go without the source check.
func NewPlugin(c *conn.Conn, log *slog.Logger) *Plugin {
	p := &Plugin{conn: c, log: log.With("component", "vpp-plugin"), wake: make(chan struct{}, 1), present: true}
	c.OnChange(func(s conn.State) {
		if s.Connected() {
			select {
			case p.wake <- struct{}{}:
			default:
			}
		}
	})
	return p
}

// Remember makes an agent that starts while VPP is away answer what its predecessor was told. Before Present and Run.
func (p *Plugin) Remember(store NICStore) {
	p.store = store
	data, err := store.LoadOwn(pluginKey)
	if err != nil {
		p.log.Warn("whether VPP has the contiv plugin is unknown until VPP is connected", "error", err)
	}
	if len(data) > 0 {
		p.present = string(data) == "yes"
	}
}

// Present says whether VPP has the plugin; while VPP is away, whether it had. Watch tells when that turns out to be wrong.
func (p *Plugin) Present() bool {
	present := p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.told = true, present
	return present
}

// Version is that of the plugin in VPP, "" if VPP has none.
func (p *Plugin) Version(ctx context.Context) (string, error) {
	if !p.look() {
		return "", nil
	}
	var reply contiv.ContivPluginGetVersionReply
	if err := p.conn.Invoke(ctx, &contiv.ContivPluginGetVersion{}, &reply); err != nil {
		return "", fmt.Errorf("version of VPP's contiv plugin: %w", err)
	}
	return fmt.Sprintf("%d.%d.%d", reply.Major, reply.Minor, reply.Patch), nil
}

// Watch calls back, from any goroutine, when Present would not answer any more what it has answered.
func (p *Plugin) Watch(callback func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callbacks = append(p.callbacks, callback)
}

// Run compares after each start of VPP, until ctx ends.
func (p *Plugin) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.wake:
		}
		for _, call := range p.changed() {
			call()
		}
	}
}

func (p *Plugin) changed() []func() {
	present := p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked || present == p.told {
		return nil
	}
	return slices.Clone(p.callbacks)
}

// look asks VPP's list of messages if it is not that of the VPP which was asked before.
func (p *Plugin) look() bool {
	state := p.conn.State()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !state.Connected() || state.Session == p.session {
		return p.present
	}
	err := p.conn.Has(ContivMessages())
	if errors.Is(err, conn.ErrDisconnected) {
		return p.present
	}
	var lacks *conn.IncompatibleError
	if errors.As(err, &lacks) && (len(lacks.Differ) > 0 || len(lacks.Missing) < lacks.Needed) {
		p.log.Error("VPP has a contiv plugin of another version, which is not used; install that of this release",
			"lacks", strings.Join(slices.Concat(lacks.Missing, lacks.Differ), ", "))
	}
	p.session, p.present = state.Session, err == nil
	p.save()
	return p.present
}

// save is for the next agent.
func (p *Plugin) save() {
	if p.store == nil {
		return
	}
	text := "no"
	if p.present {
		text = "yes"
	}
	if before, err := p.store.LoadOwn(pluginKey); err == nil && string(before) == text {
		return
	}
	if err := p.store.SaveOwn(pluginKey, []byte(text)); err != nil {
		p.log.Warn("whether VPP has the contiv plugin is not recorded; an agent that restarts while VPP is away does not have it",
			"error", err)
	}
}
