package contiv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.fd.io/govpp/binapi/vlib"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// workersWait is the timeout of the request for VPP's threads.
const workersWait = 5 * time.Second

// pluginKey is the key under which the Store keeps whether VPP had our plugin.
const pluginKey = "vpp-plugin"

// Store stores data of the node itself.
type Store interface {
	// LoadOwn returns a value; nil if there is none.
	LoadOwn(key string) ([]byte, error)
	SaveOwn(key string, value []byte) error
}

// Plugin reports whether VPP has our own plugin, and the number of its workers. Neither changes while a VPP process runs. The connection
// rejects a VPP with a plugin of another version (Accept).
type Plugin struct {
	conn  *conn.Conn
	log   *slog.Logger
	store Store // nil: nothing is stored beyond the life of the agent
	wake  chan struct{}

	mu        sync.Mutex
	session   uint64 // session in which found was read
	found     pluginFacts
	reported  pluginFacts // last result of Present
	requested bool
	callbacks []func()
}

type pluginFacts struct {
	present bool
	workers int
}

// NewPlugin returns a Plugin that sends no requests before Present or Run. Before the first connection to VPP it reports that the
// plugin is present: code that depends on the result must rather wait than work without the source check.
func NewPlugin(c *conn.Conn, log *slog.Logger) *Plugin {
	p := &Plugin{conn: c, log: log.With("component", "vpp-plugin"), wake: make(chan struct{}, 1), found: pluginFacts{present: true}}
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

// UseStore stores the result, so that an agent that starts while VPP is disconnected reports what the previous agent found. Call it
// before Present and Run.
func (p *Plugin) UseStore(store Store) {
	p.store = store
	data, err := store.LoadOwn(pluginKey)
	if err != nil {
		p.log.Warn("whether VPP has the contiv plugin is unknown until VPP is connected", "error", err)
	}
	if fields := strings.Fields(string(data)); len(fields) > 0 {
		p.found = pluginFacts{present: fields[0] == "yes"}
		if len(fields) > 1 { // an older agent did not store the number
			p.found.workers, _ = strconv.Atoi(fields[1])
		}
	}
}

// Present reports whether VPP has the plugin; while VPP is disconnected, whether it had. Watch reports when that turns out to be
// wrong.
func (p *Plugin) Present() bool {
	found := p.readFacts()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requested, p.reported = true, found
	return found.present
}

// Workers returns the number of worker threads of the VPP that Present has reported on.
func (p *Plugin) Workers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reported.workers
}

// Version returns the version of the plugin in VPP, "" if VPP has none.
func (p *Plugin) Version(ctx context.Context) (string, error) {
	if !p.readFacts().present {
		return "", nil
	}
	var reply contiv.ContivPluginGetVersionReply
	if err := p.conn.Invoke(ctx, &contiv.ContivPluginGetVersion{}, &reply); err != nil {
		return "", fmt.Errorf("version of VPP's contiv plugin: %w", err)
	}
	return fmt.Sprintf("%d.%d.%d", reply.Major, reply.Minor, reply.Patch), nil
}

// Has reports the same as Present. It is for callers that poll: Watch ignores its results.
func (p *Plugin) Has() bool { return p.readFacts().present }

// Watch registers a callback that is called, from any goroutine, when the last result of Present is no longer correct.
func (p *Plugin) Watch(callback func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callbacks = append(p.callbacks, callback)
}

// Run checks the result after each connection to VPP, until ctx ends.
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
	found := p.readFacts()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.requested || found == p.reported {
		return nil
	}
	return slices.Clone(p.callbacks)
}

// readFacts queries VPP if this session has not been queried yet.
func (p *Plugin) readFacts() pluginFacts {
	state := p.conn.State()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !state.Connected() || state.Session == p.session {
		return p.found
	}
	err := p.conn.Has(Messages())
	if errors.Is(err, conn.ErrDisconnected) {
		return p.found
	}
	workers, failed := p.countWorkers()
	if failed != nil {
		p.log.Warn("VPP does not report its number of workers; the next resync requests it again", "error", failed)
		return p.found
	}
	p.session, p.found = state.Session, pluginFacts{err == nil, workers}
	p.save()
	return p.found
}

func (p *Plugin) countWorkers() (n int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), workersWait)
	defer cancel()
	var reply vlib.ShowThreadsReply
	if err := p.conn.Invoke(ctx, &vlib.ShowThreads{}, &reply); err != nil {
		return 0, err
	}
	for _, t := range reply.ThreadData {
		if strings.TrimRight(t.Type, "\x00") == "workers" {
			n++
		}
	}
	return n, nil
}

// save stores the result for the next agent.
func (p *Plugin) save() {
	if p.store == nil {
		return
	}
	text := "no"
	if p.found.present {
		text = "yes"
	}
	text += " " + strconv.Itoa(p.found.workers)
	if before, err := p.store.LoadOwn(pluginKey); err == nil && string(before) == text {
		return
	}
	if err := p.store.SaveOwn(pluginKey, []byte(text)); err != nil {
		p.log.Warn("the presence of VPP's contiv plugin could not be stored; an agent that starts while VPP is disconnected does not have it",
			"error", err)
	}
}
