package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/vishvananda/netlink"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/plugins/pathwatch"
)

// watchOptions say what the watch of the data path may do.
type watchOptions struct {
	on   bool
	heal bool
}

func (o *watchOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "datapath-watch", true, "check whether packets get through; without it, readiness only says that processes run")
	f.BoolVar(&o.heal, "datapath-repair", true, "repair what the watch finds; without it, problems are only reported")
}

// conditionDataPath is the condition of the node by which Kubernetes is told.
const conditionDataPath = "ContivDataPath"

// newWatch makes the watch of the data path; nil where no packet moves.
func (a *agent) newWatch() (*pathwatch.Plugin, error) {
	if !a.opts.watch.on || a.opts.dataplane == dataplaneFake {
		return nil, nil
	}
	deps := pathwatch.Deps{
		PluginDeps: a.pluginDeps("pathwatch"), NodeName: a.opts.nodeName, Nodes: a.nodesync, Addresses: a.ipam,
		Echo: pathwatch.NewPinger(), HTTP: a.http, Metrics: a.registry,
	}
	switch m := a.dataplane.mover.(type) {
	case *vppMover:
		path := &vppPath{a: a, m: m, endpoints: vpp.NewEndpoints(m.conn)}
		deps.AsksGateway, deps.Dataplane, deps.Table, deps.Limits = true, path, path, path
	case *linuxMover:
		deps.Dataplane, deps.Table = &linuxPath{a: a}, tracked{}
	}
	if a.opts.watch.heal {
		deps.Repair = pathRepair{a}
	}
	if client := a.kube.writer(); client != nil {
		deps.Teller = nodeTeller{client, a.opts.nodeName}
	}
	return pathwatch.New(deps)
}

// watchAndDiagnose makes the watch of the data path, and what contiv-netctl asks.
func (a *agent) watchAndDiagnose() (err error) {
	if a.path, err = a.newWatch(); err != nil {
		return fmt.Errorf("watch of the data path: %w", err)
	}
	return a.registerDiagnosis()
}

// vppPath is the data path through VPP.
type vppPath struct {
	a         *agent
	m         *vppMover
	endpoints *vpp.Endpoints

	// At the last look: what NAT has refused, and what our plugin counts (nil: VPP does not have it).
	refused     uint64
	connections *vpp.Connections
	// refusing is the list that the plugin gave when it had refused so many connections of senders with too many.
	refusing   []pathwatch.Refusing
	refusingAt uint64
}

// Programmed implements pathwatch.Dataplane.
func (p *vppPath) Programmed() bool {
	ok, _ := p.a.controller.Ready()
	return ok && p.m.alive() == nil
}

// Alive implements pathwatch.Dataplane.
func (p *vppPath) Alive(ctx context.Context) error { return vpp.Ping(ctx, p.m.conn) }

// Sessions implements pathwatch.SessionTable. NAT44 makes room when there is need, by sessions whose time is over: how many it has
// says little. Our plugin keeps connections until their time is over, and refuses new ones when there is no room; of its two
// tables the fuller one counts.
func (p *vppPath) Sessions() pathwatch.Sessions {
	if c := p.connections; c != nil {
		return pathwatch.Sessions{
			Used: max(c.IPv4, c.IPv6), Limit: c.Max, TellsRefused: true, Refused: c.TableRefused, Keeps: true,
			Whose: "vppctl show contiv endpoints",
		}
	}
	used, limit := p.m.natUsed.Counts()
	return pathwatch.Sessions{Used: uint64(used), Limit: uint64(limit), TellsRefused: true, Refused: p.refused}
}

// Refusing implements pathwatch.Limits. VPP is asked only when its statistics have changed.
func (p *vppPath) Refusing(ctx context.Context) ([]pathwatch.Refusing, error) {
	if p.connections == nil {
		p.refusing, p.refusingAt = nil, 0
		return nil, nil
	}
	now := p.connections.EndpointRefused
	if now == p.refusingAt {
		return p.refusing, nil
	}
	list, err := p.endpoints.Connections(ctx)
	if err != nil {
		return nil, err
	}
	p.refusing, p.refusingAt = nil, now
	for _, e := range list {
		p.refusing = append(p.refusing, pathwatch.Refusing{Name: e.Name, Open: e.Open, Refused: e.Refused})
	}
	return p.refusing, nil
}

// Links implements pathwatch.Dataplane.
func (p *vppPath) Links(context.Context) (uplink, host *pathwatch.Link, err error) {
	counters, err := vpp.ReadPathCounters(statsSocket(p.m.socket))
	if err != nil {
		return nil, nil, err
	}
	p.refused, p.connections = counters.NATRefused, counters.Connections
	return p.link(p.a.ipnet.MainInterface(), counters.Links), p.link(p.a.ipnet.HostInterface(), counters.Links), nil
}

// link joins what VPP and the kernel count. An interface that is being made has no number; one of DPDK's has no device.
func (p *vppPath) link(name string, counters map[uint32]vpp.LinkCounters) *pathwatch.Link {
	index, ok := p.m.index.IfIndex(name)
	if name == "" || !ok {
		return nil
	}
	c := counters[index]
	link := &pathwatch.Link{
		Device: name, Present: true, Carrier: true, Offered: c.Offered, Refused: c.Refused, Taken: c.Taken,
	}
	dev, tap, ok := p.m.index.Device(name)
	if !ok {
		return link
	}
	link.Key = nb.VppInterfaceKey(name)
	dropped := readDevice(link, dev)
	if tap { // the device is the other end: what it receives is what VPP has sent, and what VPP does not fetch it drops
		link.Sent, link.Brought = link.Brought, link.Sent+dropped
	}
	return link
}

// readDevice reads what the kernel knows of the device of a link. It returns how many frames the device could not send.
func readDevice(link *pathwatch.Link, dev string) (dropped uint64) {
	link.Device = dev
	l, err := netlink.LinkByName(dev)
	if err != nil {
		var gone netlink.LinkNotFoundError
		link.Present = !errors.As(err, &gone)
		return 0
	}
	attrs := l.Attrs()
	link.Present = attrs.Flags&net.FlagUp != 0
	// A device that does not tell its state has a carrier.
	link.Carrier = attrs.OperState != netlink.OperDown && attrs.OperState != netlink.OperLowerLayerDown
	if n := attrs.Statistics; n != nil {
		link.Counts, link.Sent, link.Brought = true, n.TxPackets, n.RxPackets
		dropped = n.TxDropped
	}
	return dropped
}

// linuxPath is the data path through the host's own stack: of its links, only the device is looked at.
type linuxPath struct {
	a      *agent
	uplink string
	found  time.Time
}

// uplinkEvery is how often is looked which device has the default route.
const uplinkEvery = 30 * time.Second

// Programmed implements pathwatch.Dataplane.
func (p *linuxPath) Programmed() bool {
	ok, _ := p.a.controller.Ready()
	return ok && p.a.dataplane.alive() == nil
}

// Alive implements pathwatch.Dataplane.
func (p *linuxPath) Alive(context.Context) error { return nil }

// Links implements pathwatch.Dataplane.
func (p *linuxPath) Links(context.Context) (uplink, host *pathwatch.Link, err error) {
	if time.Since(p.found) > uplinkEvery {
		p.uplink = uplinkName(p.a.ipnet.MainInterface(), p.a.host.NIC)
		p.found = time.Now()
	}
	if p.uplink == "" {
		return nil, nil, nil
	}
	link := &pathwatch.Link{}
	readDevice(link, p.uplink)
	// The kernel takes what comes, and sends what it has.
	link.Taken, link.Offered, link.Counts = link.Brought, link.Sent, false
	return link, nil, nil
}

// connectionMax is how many connections the kernel may track.
const connectionMax = "/proc/sys/net/netfilter/nf_conntrack_max"

// tracked are the connections that the kernel tracks.
type tracked struct{}

// Sessions implements pathwatch.SessionTable.
func (tracked) Sessions() pathwatch.Sessions {
	used, err := trackedConnections()
	text, maxErr := os.ReadFile(connectionMax)
	if err != nil || maxErr != nil {
		return pathwatch.Sessions{}
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return pathwatch.Sessions{}
	}
	return pathwatch.Sessions{Used: uint64(used), Limit: limit}
}

// pathRepair is what the agent can do about its data path.
type pathRepair struct{ a *agent }

// Recreate implements pathwatch.Repair. The controller knows nothing of it: what is desired stays the same.
func (r pathRepair) Recreate(ctx context.Context, key, why string) error {
	_, err := r.a.dataplane.scheduler.Commit(ctx, &txn.Txn{Description: "made again: " + why, Recreate: []string{key}})
	var failed *txn.Error
	if errors.As(err, &failed) && failed.Escalate() {
		return errors.Join(err, r.Resync("the repair of the data path failed"))
	}
	return err
}

// Resync implements pathwatch.Repair.
func (r pathRepair) Resync(why string) error {
	return r.a.controller.DataplaneReconnected("data path: " + why)
}

// pathWarnings are what is wrong although the node is ready.
func (a *agent) pathWarnings() []diag.Warning {
	var out []diag.Warning
	for _, c := range a.path.Warnings() {
		out = append(out, diag.Warning{Object: c.Object, Text: c.String()})
	}
	if err := a.ipnet.SourcesChecked(); err != nil {
		out = append(out, diag.Warning{Object: "VPP", Text: err.Error()})
	}
	return out
}

// nodeTeller tells the API server.
type nodeTeller struct {
	client *kube.Client
	node   string
}

// Condition implements pathwatch.Teller.
func (t nodeTeller) Condition(ctx context.Context, ok bool, reason, message string) error {
	return t.client.SetNodeCondition(ctx, t.node, kube.NodeCondition{
		Type: conditionDataPath, Status: ok, Reason: reason, Message: message,
	})
}

// Event implements pathwatch.Teller.
func (t nodeTeller) Event(ctx context.Context, warning bool, reason, message string) error {
	return t.client.WriteEvent(ctx, kube.NodeEvent{
		Node: t.node, Component: "contiv-agent", Reason: reason, Message: message, Warning: warning,
	})
}

// writer is a client for single requests; nil where there is no API server to write to.
func (k *kubeState) writer() *kube.Client {
	if k == nil {
		return nil
	}
	return k.client
}

// relayWriter is the client of an agent that watches etcd instead of the API server; nil where it has no account there.
func (a *agent) relayWriter() (*kube.Client, error) {
	if _, err := os.Stat(serviceAccountToken); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	client, err := kube.NewClient(kube.Config{UserAgent: "contiv-agent/" + a.opts.nodeName})
	if err != nil {
		return nil, fmt.Errorf("API server, for conditions and Events: %w", err)
	}
	return client, nil
}
