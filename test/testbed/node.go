package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/environ"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// Node is one node of the testbed.
type Node struct {
	*netns.Namespace
	Dir   string       // folder of everything that the node writes
	VPP   *vpptest.VPP // nil with other dataplanes
	Agent *netns.Process
	CNI   *CNI

	opts NodeOptions
	pods atomic.Int64
}

// NodeOptions describe a node.
type NodeOptions struct {
	Name   string // name of the namespace and of the node
	BinDir string // folder of contiv-agent and contiv-cni
	Config string // contiv.conf; defaults when empty
	// VPP describes the VPP to start in the node's namespace; nil: none.
	VPP *vpptest.Options
	// BeforeVPP is called when the namespace exists and VPP is not started yet, to add NICs.
	BeforeVPP func(ctx context.Context, ns *netns.Namespace) error
	// Dataplane is the agent's --dataplane ("vpp" when empty).
	Dataplane string
	// AgentArgs are additional arguments of the agent.
	AgentArgs []string
	AgentEnv  []string
	// Conflist is the CNI configuration list; contiv-cni alone when nil.
	Conflist []byte
	// ConflistOf returns the list when the path of the agent's socket is known; it takes precedence over Conflist.
	ConflistOf func(agentSocket string) []byte
	// CNIBinDirs are searched for plugins after BinDir.
	CNIBinDirs []string
	// CNIInNode runs the plugins in the node's namespace, as a runtime does. Our plugin works in either way, but
	// plugins that change the host's network need this.
	CNIInNode bool
}

// NewNode makes the node's namespace and directory and starts VPP; the agent is started by StartAgent.
func NewNode(ctx context.Context, opts NodeOptions) (*Node, error) {
	ns, err := netns.New(ctx, opts.Name)
	if err != nil {
		return nil, err
	}
	n := &Node{Namespace: ns, opts: opts}
	if err := n.prepare(ctx); err != nil {
		return nil, errors.Join(err, n.Close(ctx))
	}
	return n, nil
}

func (n *Node) prepare(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "contiv-"+n.Name+"-")
	if err != nil {
		return err
	}
	n.Dir = dir
	if n.opts.Config != "" {
		if err := os.WriteFile(n.configFile(), []byte(n.opts.Config), 0o644); err != nil {
			return err
		}
	}
	conflist := n.opts.Conflist
	switch {
	case n.opts.ConflistOf != nil:
		conflist = n.opts.ConflistOf(n.CNISocket())
	case conflist == nil:
		conflist = Conflist(n.CNISocket())
	}
	n.CNI, err = NewCNI(append([]string{n.opts.BinDir}, n.opts.CNIBinDirs...), filepath.Join(dir, "cni-cache"), conflist)
	if err != nil {
		return err
	}
	if n.opts.CNIInNode {
		n.CNI.runIn(n.Namespace)
	}
	if n.opts.BeforeVPP != nil {
		if err := n.opts.BeforeVPP(ctx, n.Namespace); err != nil {
			return err
		}
	}
	if n.opts.VPP == nil {
		return nil
	}
	vpp := *n.opts.VPP
	vpp.Netns = n.Name
	n.VPP, err = vpptest.Launch(ctx, vpp)
	return err
}

func (n *Node) configFile() string { return filepath.Join(n.Dir, "contiv.conf") }

// CNISocket returns the socket on which the agent serves CNI requests.
func (n *Node) CNISocket() string { return filepath.Join(n.Dir, "run", "cni.sock") }

func (n *Node) agentArgs() []string {
	args := []string{
		"--node-name=" + n.Name,
		"--run-dir=" + filepath.Join(n.Dir, "run"),
		"--data-dir=" + filepath.Join(n.Dir, "data"),
		"--cni-socket=" + n.CNISocket(),
	}
	if n.opts.Config != "" {
		args = append(args, "--config="+n.configFile())
	}
	dataplane := n.opts.Dataplane
	if dataplane == "" {
		dataplane = "vpp"
	}
	args = append(args, "--dataplane="+dataplane)
	if n.VPP != nil {
		args = append(args, "--vpp-socket="+n.VPP.Socket())
	}
	return append(args, n.opts.AgentArgs...)
}

// StartAgent starts the agent, with additional arguments for this start, and waits until it is ready.
func (n *Node) StartAgent(ctx context.Context, more ...string) error {
	if err := n.LaunchAgent(ctx, more...); err != nil {
		return err
	}
	return n.WaitReady(ctx)
}

// ProductEnv returns the environment for programs under test: without the CONTIV_… variables, which are for the tests.
func ProductEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, environ.Prefix) })
}

// LaunchAgent starts the agent.
func (n *Node) LaunchAgent(ctx context.Context, more ...string) error {
	cmd := n.Command(context.WithoutCancel(ctx), filepath.Join(n.opts.BinDir, "contiv-agent"), append(n.agentArgs(), more...)...)
	cmd.Env = append(ProductEnv(), n.opts.AgentEnv...)
	p, err := netns.Start(cmd, n.Dir, "agent")
	if err != nil {
		return err
	}
	n.Agent = p
	return nil
}

// LogTail returns the end of the agent's log.
func (n *Node) LogTail(lines int) string { return tail(filepath.Join(n.Dir, "agent.log"), lines) }

// WaitReady waits until the agent's /readiness reports that it is ready.
func (n *Node) WaitReady(ctx context.Context) error {
	err := poll.Until(ctx, 10*time.Millisecond, func() error {
		if !n.Agent.Running() {
			return errors.New("the agent has ended")
		}
		_, err := n.Get(ctx, "/readiness")
		return err
	})
	if err != nil {
		return fmt.Errorf("agent of %s: %w; the end of %s:\n%s", n.Name, err, n.Agent.LogFile, tail(n.Agent.LogFile, 20))
	}
	return nil
}

// RESTSocket returns the unix socket on which the agent also serves REST, so that a client need not be in its
// namespace.
func (n *Node) RESTSocket() string { return filepath.Join(n.Dir, "run", "rest.sock") }

// Get sends a GET request to the agent's REST API.
func (n *Node) Get(ctx context.Context, path string) (string, error) {
	return n.rest(ctx, http.MethodGet, path, "")
}

// Post sends a POST request to the agent's REST API.
func (n *Node) Post(ctx context.Context, path string) (string, error) {
	return n.rest(ctx, http.MethodPost, path, "")
}

// PostJSON sends a POST request with a body to the agent's REST API.
func (n *Node) PostJSON(ctx context.Context, path, body string) (string, error) {
	return n.rest(ctx, http.MethodPost, path, body)
}

func (n *Node) rest(ctx context.Context, method, path, body string) (string, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", n.RESTSocket())
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode/100 != 2 {
		return string(answer), fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, strings.TrimSpace(string(answer)))
	}
	return string(answer), nil
}

// GetJSON sends a GET request to the agent's REST API and decodes the answer.
func (n *Node) GetJSON(ctx context.Context, path string, into any) error {
	body, err := n.Get(ctx, path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(body), into)
}

// NewPod makes the namespace of a pod; AddPod also wires it.
func (n *Node) NewPod(ctx context.Context, name string) (*Pod, error) {
	ns, err := netns.New(ctx, n.Name+"-"+name)
	if err != nil {
		return nil, err
	}
	return &Pod{
		Namespace: ns, ContainerID: fmt.Sprintf("%s-%s-%d-%d", n.Name, name, os.Getpid(), n.pods.Add(1)),
		Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", name}},
	}, nil
}

// AddPod makes a pod and wires it by CNI ADD.
func (n *Node) AddPod(ctx context.Context, name string) (*Pod, error) {
	p, err := n.NewPod(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := n.CNI.Add(ctx, p); err != nil {
		return nil, errors.Join(err, p.Delete(ctx))
	}
	return p, nil
}

// AddPodOf is like AddPod, with another network configuration list than the node's.
func (n *Node) AddPodOf(ctx context.Context, name string, conflist []byte) (*Pod, error) {
	cni, err := n.CNI.with(conflist)
	if err != nil {
		return nil, err
	}
	p, err := n.NewPod(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := cni.Add(ctx, p); err != nil {
		return nil, errors.Join(err, p.Delete(ctx))
	}
	return p, nil
}

// DeletePod runs CNI DEL and removes the namespace.
func (n *Node) DeletePod(ctx context.Context, p *Pod) error {
	return errors.Join(n.CNI.Del(ctx, p), p.Delete(ctx))
}

// Close stops everything and removes the node's files.
func (n *Node) Close(ctx context.Context) error {
	var errs []error
	if n.Agent != nil && n.Agent.Running() {
		errs = append(errs, n.Agent.Stop(30*time.Second))
	}
	if n.VPP != nil {
		n.VPP.Stop()
	}
	errs = append(errs, n.Namespace.Delete(ctx))
	if n.Dir != "" {
		errs = append(errs, os.RemoveAll(n.Dir))
	}
	return errors.Join(errs...)
}

func tail(file string, lines int) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	const most = 400 // limits a line that repeats everything
	for i, line := range all {
		if len(line) > most {
			all[i] = line[:most] + " …"
		}
	}
	return strings.Join(all, "\n")
}

// Metric returns the value of a metric without labels, or the sum over all its label values.
func (n *Node) Metric(ctx context.Context, name string) (float64, error) {
	body, err := n.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	sum, found := 0.0, false
	for line := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '{') {
			continue
		}
		fields := strings.Fields(line)
		v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("the agent has no metric %s", name)
	}
	return sum, nil
}
