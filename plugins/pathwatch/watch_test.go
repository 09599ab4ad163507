package pathwatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/nodesync"
)

// node is the environment of the plugin: a data path with faults, the cluster, Kubernetes.
type node struct {
	mu         sync.Mutex
	programmed bool
	uplink     Link
	wedged     bool
	echoFails  bool
	nodes      nodesync.Nodes
	repairs    []string
	repairFail error
	apiDown    bool
	conditions []string
	events     []string
	queried    [][]netip.Addr
}

// seen returns copies of the recorded calls of the plugin.
func (n *node) seen() (repairs, conditions, events []string, queried [][]netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.repairs), slices.Clone(n.conditions), slices.Clone(n.events), slices.Clone(n.queried)
}

func (n *node) with(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// Programmed implements Dataplane.
func (n *node) Programmed() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.programmed }

// Alive implements Dataplane.
func (n *node) Alive(context.Context) error { return nil }

// Links implements Dataplane.
func (n *node) Links(context.Context) (uplink, host *Link, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	up := n.uplink
	return &up, nil, nil
}

// Sessions implements SessionTable.
func (n *node) Sessions() Sessions { return Sessions{Used: 1, Limit: 100} }

// Query implements Echo.
func (n *node) Query(_ context.Context, addrs []netip.Addr, timeout time.Duration) ([]time.Duration, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.echoFails {
		return nil, errors.New("operation not permitted")
	}
	n.queried = append(n.queried, addrs)
	out := make([]time.Duration, len(addrs))
	for i, a := range addrs {
		gateway := a == netip.MustParseAddr("172.30.1.1")
		switch {
		case gateway:
			out[i] = time.Millisecond
		case n.wedged:
			n.uplink.Offered++
			n.uplink.Refused++
			out[i] = -1
		default:
			n.uplink.Offered++
			n.uplink.Taken++
			out[i] = 2 * time.Millisecond
		}
	}
	return out, nil
}

// Recreate implements Repair.
func (n *node) Recreate(_ context.Context, key, why string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.repairs = append(n.repairs, key)
	if !strings.HasPrefix(why, string(UplinkStuck)+": ") {
		return fmt.Errorf("why: %s", why)
	}
	if n.repairFail == nil {
		n.wedged, n.uplink.Offered, n.uplink.Refused, n.uplink.Taken = false, 0, 0, 0
	}
	return n.repairFail
}

// Resync implements Repair.
func (n *node) Resync(string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.repairs = append(n.repairs, "resync")
	return nil
}

// Condition implements Reporter.
func (n *node) Condition(_ context.Context, ok bool, reason, _ string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.apiDown {
		return errors.New("no API server")
	}
	n.conditions = append(n.conditions, fmt.Sprint(ok, " ", reason))
	return nil
}

// Event implements Reporter.
func (n *node) Event(_ context.Context, warning bool, reason, _ string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.apiDown {
		return errors.New("no API server")
	}
	n.events = append(n.events, fmt.Sprint(warning, " ", reason))
	return nil
}

// GetNodeID implements Nodes.
func (n *node) GetNodeID() uint32 { return 1 }

// GetAllNodes implements Nodes.
func (n *node) GetAllNodes() nodesync.Nodes { return n.nodes }

// PodSubnets implements Addresses.
func (n *node) PodSubnets(id uint32) ([]ipam.PodSubnet, error) {
	if id > 200 {
		return nil, errors.New("no such subnet")
	}
	return []ipam.PodSubnet{{Gateway: netip.AddrFrom4([4]byte{10, 1, byte(id), 1})}}, nil
}

// HostInterconnect implements Addresses.
func (n *node) HostInterconnect(uint32) ([]ipam.HostLink, error) {
	return []ipam.HostLink{{VPP: netip.MustParsePrefix("172.30.1.1/24")}}, nil
}

type mux map[string]http.HandlerFunc

func (m mux) RegisterHTTPHandler(path string, h http.HandlerFunc, _ ...string) { m[path] = h }

// watched runs test with a plugin that watches a node in a cluster of three.
func watched(t *testing.T, test func(t *testing.T, n *node, p *Plugin, web mux)) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{programmed: true, uplink: Link{Device: "eth1", Key: "uplink", Present: true, Carrier: true}, nodes: nodesync.Nodes{}}
		for id := uint32(1); id <= 3; id++ {
			name := fmt.Sprintf("n%d", id)
			n.nodes[name] = &nodesync.Node{ID: id, Name: name}
		}
		n.nodes["lost"] = &nodesync.Node{ID: 250, Name: "lost"} // has no addresses
		web := mux{}
		p, err := New(Deps{
			PluginDeps: infra.PluginDeps{PluginName: "pathwatch", Log: slog.New(slog.DiscardHandler)}, NodeName: "n1", Nodes: n, Addresses: n,
			ProbesGateway: true, Dataplane: n, Table: n, Echo: n, Repair: n, Reporter: n, HTTP: web, Metrics: prometheus.NewRegistry(),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(ctx) })
		wg.Go(func() { _ = p.Report(ctx) })
		test(t, n, p, web)
		cancel()
		wg.Wait()
	})
}

func resync(t *testing.T, p *Plugin) {
	t.Helper()
	ev := api.NewDBResync()
	if !p.HandlesEvent(ev) {
		t.Fatal("resyncs are not handled")
	}
	if err := p.Resync(ev, nil, 1, nil); err != nil {
		t.Fatal(err)
	}
}

// TestWatch checks the steps from the fault to the repair: readiness, REST, the Event and the condition.
func TestWatch(t *testing.T) {
	watched(t, func(t *testing.T, n *node, p *Plugin, web mux) {
		time.Sleep(5 * time.Second)
		if _, _, _, queried := n.seen(); len(queried) > 0 || p.Ready() != nil {
			t.Error("before the first resync there is nothing to ask")
		}
		resync(t, p)
		time.Sleep(20 * time.Second)
		_, _, _, queried := n.seen()
		last := queried[len(queried)-1]
		if len(last) != 3 || last[0] != netip.MustParseAddr("172.30.1.1") || !slices.Contains(last, netip.MustParseAddr("10.1.3.1")) {
			t.Errorf("asked are %v", last)
		}
		n.with(func() { n.wedged = true })
		time.Sleep(4*time.Second + 100*time.Millisecond)
		if err := p.Ready(); err == nil || !strings.Contains(err.Error(), string(UplinkStuck)) {
			t.Errorf("not noticed: %v", err)
		}
		if list := p.Warnings(); len(list) > 0 || p.Ready() == nil {
			t.Errorf("after the warnings %v were read, the node is ready: %v", list, p.Ready())
		}
		time.Sleep(20 * time.Second)
		repairs, conditions, events, _ := n.seen()
		if p.Ready() != nil || !slices.Equal(repairs, []string{"uplink"}) {
			t.Errorf("repairs %v, %v", repairs, p.Ready())
		}
		if want := []string{"true DataPathWorks", "false UplinkStuck", "true DataPathWorks"}; !slices.Equal(conditions, want) {
			t.Errorf("conditions %q", conditions)
		}
		if want := []string{"true UplinkStuck", "false DataPathRepaired", "false DataPathWorks"}; !slices.Equal(events, want) {
			t.Errorf("events %q", events)
		}
		var rep Report
		w := httptest.NewRecorder()
		web[Path](w, httptest.NewRequest(http.MethodGet, Path, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &rep); err != nil || len(rep.Repairs) != 1 || rep.Peers.Answering != 2 ||
			rep.Uplink.Device != "eth1" {
			t.Errorf("%v: %s", err, w.Body)
		}
	})
}

// TestNotProgrammed checks that nothing is checked and nothing is repaired while the dataplane is not running or is being programmed.
func TestNotProgrammed(t *testing.T) {
	watched(t, func(t *testing.T, n *node, p *Plugin, _ mux) {
		resync(t, p)
		time.Sleep(10 * time.Second)
		n.with(func() { n.wedged, n.programmed = true, false })
		_, _, _, before := n.seen()
		time.Sleep(time.Minute)
		if repairs, _, _, queried := n.seen(); p.Ready() != nil || len(repairs) > 0 || len(queried) != len(before) {
			t.Errorf("%v, %v, %d asked", p.Ready(), repairs, len(queried)-len(before))
		}
		n.with(func() { n.programmed = true })
		time.Sleep(6 * time.Second)
		if repairs, _, _, _ := n.seen(); len(repairs) != 1 {
			t.Errorf("repairs %v", repairs)
		}
	})
}

// TestCannotQuery checks that an agent that cannot send (no permission, no sockets) does not report a fault of the data path.
func TestCannotQuery(t *testing.T) {
	watched(t, func(t *testing.T, n *node, p *Plugin, _ mux) {
		resync(t, p)
		time.Sleep(10 * time.Second)
		n.with(func() { n.echoFails, n.wedged = true, true })
		time.Sleep(time.Minute)
		repairs, _, _, _ := n.seen()
		if s := p.State(); len(s.Causes) > 0 || len(repairs) > 0 {
			t.Errorf("%+v %v", s, repairs)
		}
	})
}

// TestAPIServerAway checks that Kubernetes gets the current state and the last Events when it is reachable again, and that nothing waits
// for it meanwhile. A repair that does not help does not make the node ready for a moment.
func TestAPIServerAway(t *testing.T) {
	watched(t, func(t *testing.T, n *node, p *Plugin, _ mux) {
		n.with(func() { n.apiDown, n.repairFail = true, errors.New("device or resource busy") })
		resync(t, p)
		time.Sleep(10 * time.Second)
		n.with(func() { n.wedged = true })
		time.Sleep(10 * time.Second)
		for range 3600 {
			time.Sleep(time.Second)
			if p.Ready() == nil {
				t.Fatal("the node is ready for a moment")
			}
		}
		if repairs, _, _, _ := n.seen(); len(repairs) < 5 || len(repairs) > 13 {
			t.Errorf("%d repairs in an hour", len(repairs))
		}
		n.with(func() { n.apiDown = false })
		time.Sleep(5 * time.Minute)
		_, conditions, events, _ := n.seen()
		if want := []string{"false UplinkStuck"}; !slices.Equal(conditions, want) {
			t.Errorf("conditions %q", conditions)
		}
		if !slices.Equal(events, slices.Repeat([]string{"true DataPathRepairFailed"}, keptEvents)) {
			t.Errorf("events %q", events)
		}
	})
}

// TestLostAnswer checks that a condition is written again if the API server may have the next one, whose write has failed.
func TestLostAnswer(t *testing.T) {
	n := &node{}
	p := &Plugin{Deps: Deps{Reporter: n}, reports: newReportQueue("n1")}
	works, stuck := condition{known: true, ok: true, reason: reasonWorks}, condition{known: true, reason: string(UplinkStuck)}
	for _, want := range []condition{works, stuck, works, works} {
		p.reports.want, n.apiDown = want, want == stuck
		if err := p.report(t.Context()); (err != nil) != n.apiDown {
			t.Errorf("API server away %t: %v", n.apiDown, err)
		}
	}
	if want := []string{"true DataPathWorks", "true DataPathWorks"}; !slices.Equal(n.conditions, want) {
		t.Errorf("conditions %q, want %q", n.conditions, want)
	}
}

// TestPeersByEvents checks that peers are added and removed by events.
func TestPeersByEvents(t *testing.T) {
	watched(t, func(t *testing.T, n *node, p *Plugin, _ mux) {
		resync(t, p)
		time.Sleep(5 * time.Second)
		n.with(func() { n.nodes = nodesync.Nodes{"n1": n.nodes["n1"], "n9": {ID: 9, Name: "n9"}} })
		ev := &nodesync.NodeUpdate{NodeName: "n9"}
		if !p.HandlesEvent(ev) {
			t.Fatal("joining nodes are not handled")
		}
		if _, err := p.Update(ev, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if s := p.State(); s.Peers.Answering != 1 || s.Peers.Unknown != 0 || s.Peers.Silent != 0 {
			t.Errorf("peers: %+v", s.Peers)
		}
	})
}
