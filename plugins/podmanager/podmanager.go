package podmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/controller/api"
)

// defaultStoreDir is the default directory of attachments.
const defaultStoreDir = "/run/contiv/pods"

// Config configures the plugin; the zero value is valid.
type Config struct {
	// Socket is the socket at which contiv-cni connects to the agent (default cniapi.DefaultSocket).
	Socket string
	// StoreDir is the directory of the attachment store (default defaultStoreDir). It should not survive a reboot.
	StoreDir string
}

// EventLoop is the part of the controller that podmanager uses.
type EventLoop interface {
	PushEvent(event api.Event) error
}

// Deps are the dependencies of the plugin.
type Deps struct {
	infra.PluginDeps
	EventLoop EventLoop
	// HTTPHandlers is the server at which the REST handlers are registered; nil if there is none.
	HTTPHandlers rest.HTTPHandlers
	// Metrics is the registry of the metrics; nil if there is none.
	Metrics prometheus.Registerer
}

// PodManager is the plugin. It implements API and api.EventHandler.
type PodManager struct {
	Deps
	cfg     Config
	sys     system
	store   *store
	metrics *metrics

	listening atomic.Bool // contiv-cni can connect

	mu          sync.Mutex                       // guards the following fields
	attachments map[AttachmentID]*Attachment     // written by the event loop only
	locks       map[AttachmentID]*attachmentLock // of operations in progress
	lastSeq     uint64
	resynced    bool // Resync has been called for the start-up resync
}

// New returns the plugin with the attachments that it reads from Config.StoreDir, which the previous agent has left, except for those whose sandbox
// certainly no longer exists. It registers its handler and metrics.
func New(cfg Config, deps Deps) (*PodManager, error) { return newPodManager(cfg, deps, realSystem()) }

func newPodManager(cfg Config, deps Deps, sys system) (*PodManager, error) {
	if deps.EventLoop == nil {
		return nil, errors.New("podmanager: Deps.EventLoop is required")
	}
	cfg.Socket = cmp.Or(cfg.Socket, cniapi.DefaultSocket)
	cfg.StoreDir = cmp.Or(cfg.StoreDir, defaultStoreDir)
	if deps.PluginName == "" {
		deps.SetName("podmanager")
	}
	p := &PodManager{
		Deps:        deps,
		cfg:         cfg,
		sys:         sys,
		store:       &store{dir: cfg.StoreDir, bootID: sys.bootID, log: deps.Logger()},
		attachments: map[AttachmentID]*Attachment{},
		locks:       map[AttachmentID]*attachmentLock{},
	}
	known, err := p.store.loadAll()
	if err != nil {
		return nil, fmt.Errorf("podmanager: %w", err)
	}
	for _, a := range known {
		p.lastSeq = max(p.lastSeq, a.Seq)
		p.attachments[a.ID] = a
	}
	p.dropGone()
	if p.metrics, err = newMetrics(deps.Metrics, p.count); err != nil {
		return nil, fmt.Errorf("podmanager: metrics: %w", err)
	}
	if deps.HTTPHandlers != nil {
		deps.HTTPHandlers.RegisterHTTPHandler(podsPath, p.servePods, "GET")
	}
	return p, nil
}

// dropGone removes the attachments whose sandboxes certainly no longer exist. It is possible that the runtime never deletes them, and a resync that
// configures them fails.
func (p *PodManager) dropGone() {
	for _, a := range p.LocalAttachments() {
		reason := p.goneBecause(a)
		if reason == "" {
			continue
		}
		p.Logger().Info("attachment dropped", "attachment", a.ID.String(), "pod", a.Pod.String(), "reason", reason)
		if err := p.removeAttachment(a); err != nil {
			p.Logger().Warn("attachment not removed from the store", "error", err)
		}
	}
}

// goneBecause returns the reason why the sandbox of an attachment certainly no longer exists; it returns an empty string in case of doubt.
func (p *PodManager) goneBecause(a *Attachment) string {
	if a.NetnsInode == 0 {
		return "" // the agent has never seen the namespace, so its absence proves nothing
	}
	inode, state := p.sys.netns(a.Netns)
	switch {
	case state == netnsGone:
		return "network namespace " + a.Netns + " is gone"
	case state == netnsSeen && inode != a.NetnsInode:
		return "network namespace " + a.Netns + " was replaced by another one"
	}
	return ""
}

func (p *PodManager) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.attachments)
}

func (p *PodManager) lookup(id AttachmentID) *Attachment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attachments[id]
}

func (p *PodManager) set(a *Attachment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attachments[a.ID] = a
	p.lastSeq = max(p.lastSeq, a.Seq)
}

func (p *PodManager) nextSeq() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastSeq++
	return p.lastSeq
}

// LocalAttachments implements API. It may be called from any goroutine.
func (p *PodManager) LocalAttachments() []*Attachment {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*Attachment, 0, len(p.attachments))
	for _, a := range p.attachments {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *Attachment) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return all
}

// Current implements API. It may be called from any goroutine.
func (p *PodManager) Current(pod PodID) (*Attachment, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var newest *Attachment
	for _, a := range p.attachments {
		if a.Pod == pod && (newest == nil || a.Seq > newest.Seq) {
			newest = a
		}
	}
	return newest, newest != nil
}

// SetAddresses implements API.
func (p *PodManager) SetAddresses(id AttachmentID, addrs []netip.Prefix) error {
	known := p.lookup(id)
	if known == nil {
		return fmt.Errorf("set addresses of attachment %s: it does not exist", id)
	}
	a := *known
	a.Addresses = slices.Clone(addrs)
	if err := p.store.write(&a); err != nil {
		return fmt.Errorf("set addresses of attachment %s: %w", id, err)
	}
	p.set(&a)
	return nil
}

// Listening returns the reason why contiv-cni cannot connect, or nil. It may be called from any goroutine.
func (p *PodManager) Listening() error {
	if !p.listening.Load() {
		return fmt.Errorf("the CNI socket %s is not open", p.cfg.Socket)
	}
	return nil
}

// Serve handles requests of contiv-cni until ctx ends; it must run as a job. It may start before the start-up resync: pods that are added
// before the resync wait for it.
func (p *PodManager) Serve(ctx context.Context, checks Checks) error {
	server := cniapi.NewServer(cniapi.ServerConfig{Socket: p.cfg.Socket, Log: p.Logger(), OnListening: p.listening.Store})
	return server.Serve(ctx, func(ctx context.Context, req *cniapi.Request) (*cniapi.Result, error) {
		return p.Handle(ctx, checks, req)
	})
}
