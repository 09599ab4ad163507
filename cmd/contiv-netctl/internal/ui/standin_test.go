package ui

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"context"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/state"
	"contiv.dev/vswitch/cmd/contiv-netctl/internal/ui/fleet"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/pathwatch"
	"contiv.dev/vswitch/plugins/statscollector"
)

// readToken is the only token that the stand-in agents accept.
const readToken = "a-token-that-allows-reading"

// cluster is a set of agents that answer like real ones, and can be given faults. Each listens at its own address, all on the same port.
type cluster struct {
	t     *testing.T
	port  string
	token string
	start time.Time

	mu       sync.Mutex
	nodes    []*agent // guarded by mu, including the fields of the agents
	stale    string
	services []state.Service
	posts    int // requests other than GET
	queried  int
}

// agent is the agent of one node.
type agent struct {
	name     string
	id       uint32
	down     bool
	problems []string
	silent   map[string]bool // nodes that do not reply to its probes
	pods     []state.Pod
	failed   int
	used     int
	drops    []diag.DropCounter
	denied   []fleet.Denied
	events   []map[string]any
}

// newCluster returns a cluster with the given number of nodes, named worker-1 and so on, with pods web and db on each.
func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	c := &cluster{t: t, start: time.Now(), token: filepath.Join(t.TempDir(), "read-token")}
	if err := os.WriteFile(c.token, []byte(readToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		a := &agent{name: fmt.Sprintf("worker-%d", i+1), id: uint32(i + 1), silent: map[string]bool{}, used: 6}
		for j, name := range []string{"web-" + strconv.Itoa(i+1), "db-" + strconv.Itoa(i), "cache-" + strconv.Itoa(i)} {
			a.pods = append(a.pods, state.Pod{
				Namespace: []string{"shop", "shop", "default"}[j], Name: name, Interface: fmt.Sprintf("tap%d", j+1), Current: true,
				Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.1.%d.%d/32", i+1, j+2)), netip.MustParsePrefix(fmt.Sprintf("fd10:1:0:%x::%x/128", i+1, j+2))},
			})
		}
		a.events = events(a.name)
		c.nodes = append(c.nodes, a)
	}
	c.services = c.someServices()
	c.listen()
	return c
}

func (c *cluster) someServices() []state.Service {
	backends := func(pod int, port string) (out []string) {
		for i := range c.nodes {
			out = append(out, fmt.Sprintf("10.1.%d.%d:%s", i+1, pod+2, port))
		}
		return out
	}
	return []state.Service{{
		Namespace: "shop", Name: "web", ClusterIPs: []string{"10.96.0.20"}, LoadBalancerIPs: []string{"203.0.113.9"}, TrafficPolicy: "Cluster",
		Ports: []state.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, NodePort: 30080, Backends: backends(0, "8080")},
			{Name: "https", Protocol: "TCP", Port: 443, Backends: backends(0, "8443")}},
	}, {
		Namespace: "shop", Name: "db", ClusterIPs: []string{"10.96.0.21"}, InternalTrafficPolicy: "Local",
		Ports: []state.ServicePort{{Name: "postgres", Protocol: "TCP", Port: 5432, Backends: backends(1, "5432")[:1]}},
	}, {
		Namespace: "default", Name: "kubernetes", ClusterIPs: []string{"10.96.0.1"},
		Ports: []state.ServicePort{{Name: "https", Protocol: "TCP", Port: 443, Backends: []string{"192.168.16.1:6443"}}},
	}}
}

// listen binds 127.0.0.1, 127.0.0.2 and so on to one port that is free on all of them.
func (c *cluster) listen() {
	for range 20 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.t.Fatal(err)
		}
		_, c.port, _ = net.SplitHostPort(first.Addr().String())
		listeners := []net.Listener{first}
		for i := 1; i < len(c.nodes) && err == nil; i++ {
			var l net.Listener
			if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.%d:%s", i+1, c.port)); err == nil {
				listeners = append(listeners, l)
			}
		}
		if err != nil {
			for _, l := range listeners {
				_ = l.Close()
			}
			continue
		}
		for i, l := range listeners {
			s := &httptest.Server{Listener: l, Config: &http.Server{Handler: c.handler(c.nodes[i]), ReadHeaderTimeout: time.Second}}
			s.Start()
			c.t.Cleanup(s.Close)
		}
		return
	}
	c.t.Fatal("no port is free on all loopback addresses")
}

// set changes the cluster.
func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// open connects to the stand-in agents like contiv-netctl ui.
func (c *cluster) open(ctx context.Context) (*client.Cluster, error) {
	return client.Open(ctx, client.Options{Server: "127.0.0.1:" + c.port, ReadOnly: true,
		Credentials: client.Credentials{Plain: true, TokenFile: c.token}})
}

func (c *cluster) handler(a *agent) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.queried++
		if a.down {
			panic(http.ErrAbortHandler)
		}
		if r.Header.Get("Authorization") != "Bearer "+readToken {
			http.Error(w, `{"error": "missing or wrong bearer token"}`, http.StatusUnauthorized)
			return
		}
		if r.Method != http.MethodGet {
			c.posts++
			http.Error(w, `{"error": "the token allows GET"}`, http.StatusForbidden)
			return
		}
		v, ok := c.answer(a, r)
		if !ok {
			http.Error(w, `{"error": "there is no such path"}`, http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(v)
	})
}

func (c *cluster) answer(a *agent, r *http.Request) (any, bool) {
	switch r.URL.Path {
	case diag.AgentPath:
		return c.info(a), true
	case client.NodesPath:
		var out client.Nodes
		out.Stale = c.stale
		for i, n := range c.nodes {
			out.Nodes = append(out.Nodes, nodesync.NodeReport{ID: n.id, Name: n.name, State: "claimed", MgmtIPs: []string{fmt.Sprintf("127.0.0.%d", i+1)},
				VPPIPs: []string{fmt.Sprintf("192.168.16.%d/24", i+1)}})
		}
		return out, true
	case state.PodsPath:
		return a.pods, true
	case state.ServicesPath:
		return c.services, true
	case "/contiv/v1/ipam":
		return state.IPAM{NodeID: a.id, NodeName: a.name}, true
	case "/contiv/v1/ipam/allocations":
		return map[string]any{"Subnets": []state.Usage{{Subnet: fmt.Sprintf("10.1.%d.0/24", a.id), Used: a.used, Free: 252 - a.used}}}, true
	case "/scheduler/status":
		return map[string]any{"Counts": map[string]int{"CONFIGURED": 58, "FAILED": a.failed}}, true
	case pathwatch.Path:
		return c.paths(a), true
	case statscollector.TrafficPath:
		return c.traffic(a), true
	case diag.DropsPath:
		return diag.DropsReply{Sampled: time.Now(), Counters: a.drops}, true
	case "/contiv/v1/policy/drops":
		return a.denied, true
	case "/controller/event-history":
		return history(a, r)
	case "/scheduler/dump":
		return []fleet.Value{{Key: r.URL.Query().Get("key"), State: "CONFIGURED", Applied: json.RawMessage(`{"type": "TAP", "enabled": true, "mtu": 1450, "tap": {"version": 2}}`)}}, true
	}
	return nil, false
}

func (c *cluster) info(a *agent) diag.AgentInfo {
	info := diag.AgentInfo{
		Node: a.name, Dataplane: "vpp", Version: "0.1.0", Commit: "0123456789ab", VPP: &diag.VPPInfo{Version: "25.10", Plugin: "1.0"},
		Started: c.start.UTC().Format(time.RFC3339), Transport: "vxlan", Problems: a.problems,
		Access: diag.Access{Address: "127.0.0.1:" + c.port, ReadTokenFile: c.token},
	}
	for peer := range a.silent {
		info.Warnings = append(info.Warnings, diag.Warning{Object: peer, Text: "no reply through the overlay from " + peer})
	}
	return info
}

func (c *cluster) paths(a *agent) pathwatch.Report {
	rep := pathwatch.Report{State: pathwatch.State{Causes: []pathwatch.Cause{}}}
	for _, n := range c.nodes {
		if n == a {
			continue
		}
		p := pathwatch.PeerPath{Node: n.name, Address: netip.MustParseAddr(fmt.Sprintf("10.1.%d.1", n.id)), State: pathwatch.PeerAnswers,
			RTTMs: 0.2 + 0.03*float64(a.id+n.id), Queried: time.Now()}
		if a.silent[n.name] {
			p.State, p.RTTMs = pathwatch.PeerSilent, 0
			rep.Causes = append(rep.Causes, pathwatch.Cause{Kind: pathwatch.PeerUnreachable, Object: n.name, Since: c.start, Text: "no reply"})
		}
		rep.Paths = append(rep.Paths, p)
	}
	return rep
}

// traffic returns counters: the k-th pod of a node sends k and receives 3k Mbit/s.
func (c *cluster) traffic(a *agent) statscollector.TrafficReport {
	now := time.Now()
	rep := statscollector.TrafficReport{Sampled: now}
	for k, p := range a.pods {
		n := uint64(now.Sub(c.start).Microseconds()) * uint64(k+1) * uint64(a.id) / 8
		rep.Interfaces = append(rep.Interfaces, statscollector.InterfaceTraffic{Namespace: p.Namespace, Pod: p.Name, RxBytes: n, TxBytes: 3 * n,
			RxPackets: n / 800, TxPackets: n / 400, Drops: uint64(k) * uint64(a.id-1)})
	}
	return rep
}

func history(a *agent, r *http.Request) (any, bool) {
	q := r.URL.Query()
	out := []map[string]any{}
	from, _ := strconv.Atoi(q.Get("from"))
	for _, e := range a.events {
		if text := q.Get("seq-num"); text != "" && text == fmt.Sprint(e["SeqNum"]) {
			return e, true
		}
		if e["SeqNum"].(int) >= from {
			out = append(out, e)
		}
	}
	return out, q.Get("seq-num") == ""
}

// events returns the history of an agent with VPP: the start, a pod, a service, a failure.
func events(node string) (out []map[string]any) {
	at := time.Date(2026, 11, 22, 9, 14, 3, 0, time.UTC)
	add := func(name, text, method, failure string, handlers []map[string]any, ops ...string) {
		at = at.Add(time.Duration(len(text)) * 1700 * time.Millisecond)
		e := map[string]any{"SeqNum": len(out) + 1, "ProcessingStart": at, "ProcessingEnd": at.Add(time.Duration(3+len(ops)) * time.Millisecond), "Name": name,
			"Description": text, "Method": method, "Handlers": handlers}
		if failure != "" {
			e["Error"] = failure
		}
		var executed []map[string]any
		for _, op := range ops {
			action, key, _ := strings.Cut(op, " ")
			one := map[string]any{"Action": action, "Key": key, "Took": 180000 + 9000*len(key)}
			if strings.HasPrefix(action, "!") {
				one["Action"], one["Err"] = action[1:], failure
			}
			executed = append(executed, one)
		}
		if executed != nil {
			e["Txn"] = map[string]any{"SeqNum": len(out) + 1, "Kind": 0, "PlanTime": 90000, "ExecTime": 2100000, "Planned": executed, "Executed": executed, "Failed": nil}
		}
		out = append(out, e)
	}
	did := func(list ...string) (out []map[string]any) {
		for _, one := range list {
			name, change, _ := strings.Cut(one, ": ")
			out = append(out, map[string]any{"Handler": name, "Change": change})
		}
		return out
	}
	add("Database Resync", "Database Resync (cluster database, 41 values)", "Full Resync", "", did("nodesync", "ipam", "ipnet", "service"),
		"create config/vpp/v2/vrf-table/id/1/protocol/IPV4", "create config/vpp/v2/interfaces/vxlanBVI", "create config/vpp/l2/v2/bridge-domain/vxlanBD",
		"create config/vpp/v2/interfaces/host-eth1", "create config/vpp/v2/route/vrf/0/dst/0.0.0.0/0/gw/192.168.16.254",
		"create config/vpp/contiv/v1/config", "create config/vpp/contiv/v1/endpoint/vxlanBVI")
	add("Node Update", "Node Update: worker-3 joined (ID 3)", "Update", "", did("ipnet: tunnel to worker-3"),
		"create config/vpp/v2/interfaces/vxlan3", "update config/vpp/l2/v2/bridge-domain/vxlanBD", "create config/vpp/l2/v2/fib/vxlanBD/mac/12:2b:00:00:00:03",
		"create config/vpp/v2/arp/vxlanBVI/192.168.30.3", "create config/vpp/v2/route/vrf/1/dst/10.1.3.0/24/gw/192.168.30.3")
	for i := range 14 {
		add("Add Pod", fmt.Sprintf("Add Pod shop/web-%d (container 9c51fa%d02/eth0)", i+1, i), "Update", "", did("podmanager", "ipam: 10.1.1."+fmt.Sprint(i+2), "ipnet: connected", "policy: 2 tiers"),
			"create config/vpp/v2/interfaces/tap-shop-web-"+fmt.Sprint(i+1), "create config/linux/interfaces/v2/interface/eth0-shop-web-"+fmt.Sprint(i+1),
			"create config/vpp/v2/route/if/tap-shop-web/vrf/1/dst/10.1.1."+fmt.Sprint(i+2)+"/32", "create config/vpp/contiv/v1/endpoint/tap-shop-web-"+fmt.Sprint(i+1),
			"create config/vpp/contiv/v1/endpoint-policy/tap-shop-web-"+fmt.Sprint(i+1))
		add("Kubernetes State Change", "Kubernetes State Change: k8s/endpointSlice/web-x2k9d changed", "Update", "", did("service: 1 service"),
			"update config/vpp/contiv/v1/service/a41f")
		add("Kubernetes State Change", "Kubernetes State Change: k8s/node/"+node+" changed", "Update", "", did("nodesync"))
	}
	add("Delete Pod", "Delete Pod shop/web-14 (container 9c51fa1302/eth0)", "Update", "", did("ipam: 10.1.1.15 is free", "ipnet: disconnected"),
		"delete config/vpp/contiv/v1/endpoint-policy/tap-shop-web-14", "delete config/vpp/contiv/v1/endpoint/tap-shop-web-14",
		"delete config/vpp/v2/route/if/tap-shop-web/vrf/1/dst/10.1.1.15/32", "delete config/linux/interfaces/v2/interface/eth0-shop-web-14",
		"delete config/vpp/v2/interfaces/tap-shop-web-14")
	add("Add Pod", "Add Pod shop/batch-7 (container 77ab01/eth0)", "Update", "tap-shop-batch-7: VPP: no such file or directory (network namespace)",
		did("podmanager", "ipam: 10.1.1.19", "ipnet: connected"), "create config/vpp/contiv/v1/endpoint/tap-shop-batch-7",
		"!create config/vpp/v2/interfaces/tap-shop-batch-7")
	return out
}
