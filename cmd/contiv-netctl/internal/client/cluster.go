package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/nodesync"
)

// NodesPath lists the nodes of the cluster.
const NodesPath = "/contiv/v1/nodes"

// defaultPort is the port of agents unless another one is known.
const defaultPort = "9999"

// Options holds how agents are reached; for empty fields, the settings of the first agent are used.
type Options struct {
	Socket string // of the local agent
	Server string // host:port of the first agent, instead of the local one
	Port   string // of the other agents
	// ReadOnly: agents get GET requests only, with the read token if there is one.
	ReadOnly bool
	Credentials
}

// Nodes is the answer to GET NodesPath.
type Nodes struct {
	Nodes  []nodesync.NodeReport `json:"nodes"`
	Broken map[string]string     `json:"broken"`
	// Stale is why the agent returned stored data: etcd does not respond. Empty: the data are current.
	Stale string `json:"stale,omitempty"`
}

// Cluster is the set of a cluster's agents.
type Cluster struct {
	opts  Options
	first *Agent
	info  diag.AgentInfo // of the first
	nodes Nodes

	// remotes holds the agents of other nodes that were queried before, with their connections. It is shared by all clusters that Again makes of this
	// one.
	remotes *remotes
}

// maxAge is how long a token and CA are used for the agent of another node before they are read again: the files may be replaced.
const maxAge = time.Minute

// remotes caches agents by node and address.
type remotes struct {
	mu     sync.Mutex
	agents map[string]*remembered // guarded by mu
}

type remembered struct {
	agent *Agent
	made  time.Time
}

// get returns the agent of a node. If it is missing or too old, create makes it.
func (r *remotes) get(key string, create func() (*Agent, error)) (*Agent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.agents[key]
	if old != nil && time.Since(old.made) < maxAge {
		return old.agent, nil
	}
	a, err := create()
	if err != nil {
		return nil, err
	}
	if old != nil {
		old.agent.http.CloseIdleConnections()
	}
	r.agents[key] = &remembered{a, time.Now()}
	return a, nil
}

// keep removes the agents of nodes that do not exist any more.
func (r *remotes) keep(nodes []nodesync.NodeReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, old := range r.agents {
		if !slices.ContainsFunc(nodes, func(n nodesync.NodeReport) bool { return n.Name == old.agent.Name && n.State == "claimed" }) {
			old.agent.http.CloseIdleConnections()
			delete(r.agents, key)
		}
	}
}

// Open queries the first agent for its description and the nodes. Without etcd it has only the first agent's own node.
func Open(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{opts: opts, remotes: &remotes{agents: map[string]*remembered{}}}
	if opts.Server == "" {
		c.first = Local(opts.Socket)
	} else {
		var err error
		if c.first, err = Remote("", opts.Server, opts.Credentials); err != nil {
			return nil, err
		}
	}
	c.first.readOnly = opts.ReadOnly
	if err := c.query(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Again queries the first agent again and keeps the connections to all agents. It is for commands that query them repeatedly.
func (c *Cluster) Again(ctx context.Context) (*Cluster, error) {
	first := *c.first
	again := &Cluster{opts: c.opts, first: &first, remotes: c.remotes}
	if err := again.query(ctx); err != nil {
		return nil, err
	}
	again.remotes.keep(again.nodes.Nodes)
	return again, nil
}

// query queries the first agent for its description and the nodes.
func (c *Cluster) query(ctx context.Context) error {
	if err := c.first.Get(ctx, diag.AgentPath, &c.info); err != nil {
		if c.opts.Server == "" && IsUnreachable(err) {
			err = fmt.Errorf("%w; is the agent running on this node, is this root? --socket says where another agent's socket "+
				"is, and --server queries another node's agent", err)
		}
		var errno syscall.Errno
		if c.opts.Server != "" && errors.As(err, &errno) {
			err = fmt.Errorf("%w; check --server, that the agent runs there, and that it listens there (--http of contiv-agent)", err)
		}
		return err
	}
	c.first.Name = c.info.Node
	if err := c.first.Get(ctx, NodesPath, &c.nodes); err != nil {
		c.nodes.Nodes = []nodesync.NodeReport{{Name: c.info.Node, State: "claimed"}}
		c.nodes.Stale = "only this node is known: " + err.Error()
	}
	return nil
}

// First returns the agent that was queried first, and its description.
func (c *Cluster) First() (*Agent, diag.AgentInfo) { return c.first, c.info }

// Nodes returns the nodes as the first agent reports them.
func (c *Cluster) Nodes() Nodes { return c.nodes }

// Names returns the names of the nodes that exist.
func (c *Cluster) Names() []string {
	var out []string
	for _, n := range c.nodes.Nodes {
		if n.State == "claimed" {
			out = append(out, n.Name)
		}
	}
	return out
}

// Check returns an error if the cluster does not have one of the nodes.
func (c *Cluster) Check(nodes []string) error {
	for _, node := range nodes {
		if _, err := c.Agent(node); errors.Is(err, errNoNode) {
			return err
		}
	}
	return nil
}

var errNoNode = errors.New("there is no node")

// Agent returns the agent of a node, given by name or by any of its addresses; empty: the first agent.
func (c *Cluster) Agent(node string) (*Agent, error) {
	if node == "" || node == c.info.Node {
		return c.first, nil
	}
	for i := range c.nodes.Nodes {
		n := &c.nodes.Nodes[i]
		if n.State == "claimed" && (n.Name == node || hasAddress(n, node)) {
			if n.Name == c.info.Node {
				return c.first, nil
			}
			return c.remote(n)
		}
	}
	return nil, fmt.Errorf("%w %q; the cluster has %s", errNoNode, node, strings.Join(c.Names(), ", "))
}

func hasAddress(n *nodesync.NodeReport, text string) bool {
	want, err := netip.ParseAddr(text)
	if err != nil {
		return false
	}
	for _, list := range [][]string{n.MgmtIPs, n.VPPIPs} {
		for _, a := range list {
			if got, ok := parse(a); ok && got == want {
				return true
			}
		}
	}
	return false
}

// parse parses an address with or without a prefix length.
func parse(text string) (netip.Addr, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Addr(), true
	}
	a, err := netip.ParseAddr(text)
	return a, err == nil
}

// remote returns the agent of another node. It uses the management address, which the node's host stack has, or else the address in the
// network of nodes, which is the host's own where there is no VPP.
func (c *Cluster) remote(n *nodesync.NodeReport) (*Agent, error) {
	for _, list := range [][]string{n.MgmtIPs, n.VPPIPs} {
		for _, text := range list {
			if addr, ok := parse(text); ok {
				cred, port, err := c.access()
				if err != nil {
					return nil, fmt.Errorf("node %s: %w", n.Name, err)
				}
				address := net.JoinHostPort(addr.String(), port)
				return c.remotes.get(n.Name+" "+address, func() (*Agent, error) {
					a, err := Remote(n.Name, address, cred)
					if err == nil {
						a.readOnly = c.opts.ReadOnly
					}
					return a, err
				})
			}
		}
	}
	return nil, fmt.Errorf("node %s has no known address at which its agent could be reached", n.Name)
}

// access fills missing options from the settings of the first agent.
func (c *Cluster) access() (Credentials, string, error) {
	cred, port := c.opts.Credentials, c.opts.Port
	host, own, err := net.SplitHostPort(c.info.Access.Address)
	if port == "" {
		port = defaultPort
		if err == nil {
			port = own
		}
	}
	if cred.TokenFile == "" && c.opts.ReadOnly {
		cred.TokenFile = readable(c.info.Access.ReadTokenFile)
	}
	if cred.TokenFile == "" {
		cred.TokenFile = c.info.Access.TokenFile
	}
	if cred.CAFile == "" {
		cred.CAFile = c.info.Access.CAFile
	}
	if addr, parseErr := netip.ParseAddr(host); cred.TokenFile == "" && (host == "localhost" || parseErr == nil &&
		addr.IsLoopback()) {
		return cred, port, &LocalOnly{c.info.Access.Address}
	}
	return cred, port, nil
}

// LocalOnly means that the agents of other nodes cannot be queried from here, because agents listen on a loopback address, which is the
// default. It is a setting and not a fault of those nodes.
type LocalOnly struct {
	Address string // host:port
}

// Error implements error.
func (l *LocalOnly) Error() string {
	return fmt.Sprintf("agents listen on %s only; to query them from other nodes, set agent.remote.enabled=true in the chart's values, or "+
		"start agents with --http on an address of the node, --http-cert, --http-key and --http-token-file", l.Address)
}

// IsLocalOnly reports whether an agent was not queried because of LocalOnly.
func IsLocalOnly(err error) bool {
	var l *LocalOnly
	return errors.As(err, &l)
}

// readable returns the file if it can be read here; else empty.
func readable(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	_ = f.Close() // opened for reading only
	return file
}

// Answer is the answer of a node.
type Answer[T any] struct {
	Node  string
	Value T
	Err   error
}

// parallel is how many agents are queried at the same time.
const parallel = 16

// Each queries the agents of nodes (of all, if none is given) in parallel. The answers are in the order of the nodes; an agent that does not
// answer has an answer with an error.
func Each[T any](ctx context.Context, c *Cluster, nodes []string, query func(context.Context, *Agent) (T, error)) []Answer[T] {
	if len(nodes) == 0 {
		nodes = c.Names()
	}
	out := make([]Answer[T], len(nodes))
	jobs := lifecycle.NewGroup(ctx, slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i, node := range nodes {
		wg.Add(1)
		jobs.Go(node, func(ctx context.Context) error {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i].Node = node
			agent, err := c.Agent(node)
			if err != nil {
				out[i].Err = err
				return nil
			}
			out[i].Node = agent.Name
			out[i].Value, out[i].Err = query(ctx, agent)
			return nil
		})
	}
	wg.Wait()
	return out
}

// Failed joins the errors of answers.
func Failed[T any](answers []Answer[T]) error {
	var errs []error
	for _, a := range answers {
		errs = append(errs, a.Err)
	}
	return errors.Join(errs...)
}
