package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	cnitypes "github.com/containernetworking/cni/pkg/types"
	cnicurrent "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"contiv.dev/vswitch/test/testbed/netns"
)

// CNI calls the CNI binary as a container runtime does.
type CNI struct {
	cni      *libcni.CNIConfig
	list     *libcni.NetworkConfigList
	binDirs  []string
	cacheDir string
}

// NewCNI returns a CNI that uses the binaries in binDirs and a network configuration list as JSON; results are
// cached in cacheDir.
func NewCNI(binDirs []string, cacheDir string, conflist []byte) (*CNI, error) {
	list, err := libcni.NetworkConfFromBytes(conflist)
	if err != nil {
		return nil, fmt.Errorf("network configuration list: %w", err)
	}
	return &CNI{
		cni: libcni.NewCNIConfigWithCacheDir(binDirs, cacheDir, nil), list: list, binDirs: binDirs, cacheDir: cacheDir,
	}, nil
}

// with returns the same CNI with another network configuration list.
func (c *CNI) with(conflist []byte) (*CNI, error) {
	list, err := libcni.NetworkConfFromBytes(conflist)
	if err != nil {
		return nil, fmt.Errorf("network configuration list: %w", err)
	}
	other := *c
	other.list = list
	return &other, nil
}

// runIn makes plugins run in a namespace.
func (c *CNI) runIn(ns *netns.Namespace) {
	c.cni = libcni.NewCNIConfigWithCacheDir(c.binDirs, c.cacheDir, &nsExec{
		RawExec: &invoke.RawExec{Stderr: os.Stderr}, ns: ns,
	})
}

// nsExec runs plugins in a network namespace.
type nsExec struct {
	*invoke.RawExec
	version.PluginDecoder
	ns *netns.Namespace
}

// ExecPlugin implements invoke.Exec.
func (e *nsExec) ExecPlugin(ctx context.Context, plugin string, stdin []byte, environ []string) ([]byte, error) {
	cmd := e.ns.Command(ctx, plugin)
	cmd.Env, cmd.Stdin = environ, bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	failure := &cnitypes.Error{}
	if json.Unmarshal(stdout.Bytes(), failure) == nil && failure.Msg != "" {
		return nil, failure
	}
	return nil, fmt.Errorf("%s: %w: %s", plugin, err, stderr.String())
}

// Conflist returns a network configuration list with contiv-cni alone.
func Conflist(agentSocket string) []byte {
	return ConflistWithMTU(agentSocket, 0)
}

// ConflistWithMTU is like Conflist with an MTU for pods; 0: the node's.
func ConflistWithMTU(agentSocket string, mtu int) []byte {
	plugin := map[string]any{"type": "contiv-cni", "agentSocket": agentSocket}
	if mtu != 0 {
		plugin["mtu"] = mtu
	}
	data, _ := json.Marshal(map[string]any{"cniVersion": "1.1.0", "name": "contiv", "plugins": []any{plugin}})
	return data
}

// Pod is a pod of the testbed: a namespace and the result of CNI.
type Pod struct {
	*netns.Namespace
	ContainerID string
	Args        [][2]string
	// Capabilities are the runtime's arguments for plugins that declare them, for example portMappings.
	Capabilities map[string]any
	IPs          []netip.Addr
	Gateways     []netip.Addr
}

func (p *Pod) runtimeConf() *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: p.ContainerID, NetNS: p.Path(), IfName: "eth0", Args: p.Args, CapabilityArgs: p.Capabilities}
}

// Add runs CNI ADD and stores the addresses.
func (c *CNI) Add(ctx context.Context, p *Pod) (*cnicurrent.Result, error) {
	res, err := c.cni.AddNetworkList(ctx, c.list, p.runtimeConf())
	if err != nil {
		return nil, fmt.Errorf("CNI ADD %s: %w", p.Name, describe(err))
	}
	result, err := cnicurrent.NewResultFromResult(res)
	if err != nil {
		return nil, fmt.Errorf("CNI ADD %s: result: %w", p.Name, err)
	}
	p.IPs, p.Gateways = nil, nil
	for _, ip := range result.IPs {
		if addr, ok := netip.AddrFromSlice(ip.Address.IP); ok {
			p.IPs = append(p.IPs, addr.Unmap())
		}
		if gw, ok := netip.AddrFromSlice(ip.Gateway); ok {
			p.Gateways = append(p.Gateways, gw.Unmap())
		}
	}
	return result, nil
}

// Del runs CNI DEL.
func (c *CNI) Del(ctx context.Context, p *Pod) error {
	if err := c.cni.DelNetworkList(ctx, c.list, p.runtimeConf()); err != nil {
		return fmt.Errorf("CNI DEL %s: %w", p.Name, describe(err))
	}
	return nil
}

// Check runs CNI CHECK.
func (c *CNI) Check(ctx context.Context, p *Pod) error {
	if err := c.cni.CheckNetworkList(ctx, c.list, p.runtimeConf()); err != nil {
		return fmt.Errorf("CNI CHECK %s: %w", p.Name, describe(err))
	}
	return nil
}

// Status runs CNI STATUS.
func (c *CNI) Status(ctx context.Context) error {
	if err := c.cni.GetStatusNetworkList(ctx, c.list); err != nil {
		return fmt.Errorf("CNI STATUS: %w", describe(err))
	}
	return nil
}

// GC runs CNI GC with the given pods as the valid ones.
func (c *CNI) GC(ctx context.Context, valid ...*Pod) error {
	args := &libcni.GCArgs{}
	for _, p := range valid {
		args.ValidAttachments = append(args.ValidAttachments, cnitypes.GCAttachment{ContainerID: p.ContainerID, IfName: "eth0"})
	}
	if err := c.cni.GCNetworkList(ctx, c.list, args); err != nil {
		return fmt.Errorf("CNI GC: %w", describe(err))
	}
	return nil
}

// describe adds the details that libcni's error text leaves out.
func describe(err error) error {
	if e, ok := err.(*cnitypes.Error); ok && e.Details != "" {
		return fmt.Errorf("%w (%s)", err, e.Details)
	}
	return err
}
