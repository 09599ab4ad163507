package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/netns"
)

const kubeProxySide = "kube-proxy"

// findKubeProxy returns the path of kube-proxy, the peer.
func findKubeProxy() string {
	if path := os.Getenv("KUBE_PROXY"); path != "" {
		return path
	}
	if path, err := exec.LookPath("kube-proxy"); err == nil {
		return path
	}
	home, _ := os.UserHomeDir() // if empty, the path is relative and does not exist
	path := filepath.Join(home, ".cache", "kubelab", "bin", "kube-proxy")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func serviceSides(e *env) ([]side, error) {
	var sides []side
	if path := findKubeProxy(); path != "" {
		sides = append(sides, &kubeProxy{path: path})
	} else {
		fmt.Println("   kube-proxy: none found (KUBE_PROXY, PATH, /root/.cache/kubelab/bin); ours alone is measured")
	}
	sides = append(sides, &agentSide{env: e, dataplane: "linux", filter: "nft"},
		&agentSide{env: e, dataplane: "linux", filter: "iptables"})
	if e.vpp {
		sides = append(sides, &agentSide{env: e, dataplane: "vpp"})
		if _, err := vpptest.Plugin(context.Background(), ""); err == nil {
			sides = append(sides, &agentSide{env: e, dataplane: "vpp", plugin: true})
		} else {
			fmt.Println("   vpp-plugin: left out:", firstLines(err.Error(), 1))
		}
	}
	if e.services.only == "" {
		return slices.DeleteFunc(sides, func(s side) bool { return s.name() == "linux-iptables" }), nil
	}
	wanted := strings.Split(e.services.only, ",")
	sides = slices.DeleteFunc(sides, func(s side) bool { return !slices.Contains(wanted, s.name()) })
	if len(sides) == 0 {
		return nil, fmt.Errorf("none of %q is there", wanted)
	}
	return sides, nil
}

// kubeProxy is kube-proxy in nftables mode.
type kubeProxy struct {
	path string
	ns   *netns.Namespace
	dir  string
}

func (k *kubeProxy) name() string { return kubeProxySide }

func (k *kubeProxy) state() string {
	out, _ := exec.Command("tail", "-n", "15", filepath.Join(k.dir, "kube-proxy.log")).CombinedOutput()
	return string(out)
}

// kubeProxyConfig minimizes the delay between syncs of kube-proxy (0 would be its default of a second), and does not touch
// parameters of the machine that a namespace cannot write.
const kubeProxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: ` + benchNode + `
clusterCIDR: 10.0.0.0/10
clientConnection: {kubeconfig: %s}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nftables: {minSyncPeriod: 1ms}
`

func (k *kubeProxy) begin(ctx context.Context, plug plugFunc) (_ *netns.Namespace, err error) {
	if k.dir, err = os.MkdirTemp("", "contiv-bench-kube-proxy-"); err != nil {
		return nil, err
	}
	if k.ns, err = netns.New(ctx, benchNode); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(k.dir, "kubeconfig")
	if err := errors.Join(os.WriteFile(kubeconfig, kubeapi.Kubeconfig(apiAddress), 0o600),
		os.WriteFile(filepath.Join(k.dir, "config"), fmt.Appendf(nil, kubeProxyConfig, kubeconfig), 0o600)); err != nil {
		return nil, err
	}
	if err := errors.Join(plug(ctx, k.ns), address(ctx, k.ns)); err != nil {
		return nil, err
	}
	far, _ := testbed.UplinkAddress(1)
	_, err = k.ns.Run(ctx, "ip", "route", "add", podNetwork, "via", far)
	return k.ns, err
}

func (k *kubeProxy) start(ctx context.Context) (*netns.Process, error) {
	cmd := k.ns.Command(context.WithoutCancel(ctx), k.path, "--config="+filepath.Join(k.dir, "config"))
	return netns.Start(cmd, k.dir, "kube-proxy")
}

func (k *kubeProxy) close(ctx context.Context) error {
	if k.ns == nil {
		return nil
	}
	return errors.Join(k.ns.Delete(ctx), os.RemoveAll(k.dir))
}

// agentSide is our agent.
type agentSide struct {
	env       *env
	dataplane string
	filter    string // of the Linux dataplane
	plugin    bool   // VPP has ours
	node      *testbed.Node
	etcd      *clusterdb.Embedded
	dir       string
}

func (a *agentSide) name() string {
	switch {
	case a.filter != "":
		return a.dataplane + "-" + a.filter
	case a.plugin:
		return a.dataplane + "-plugin"
	}
	return a.dataplane
}

func (a *agentSide) state() string { return a.node.LogTail(15) }

// agentConfig has networks without overlay, so that the other node need not run our agent.
const agentConfig = `nodeToNodeTransport: nooverlay
useTAPInterfaces: true
ipamConfig:
  podSubnetCIDR: 10.0.0.0/10
  podSubnetOneNodePrefixLen: 16
  serviceCIDR: 10.96.0.0/12
nodeConfig:
- nodeName: ` + benchNode + `
  mainVPPInterface: {interfaceName: %s, ip: %s/24}
`

func (a *agentSide) begin(ctx context.Context, plug plugFunc) (_ *netns.Namespace, err error) {
	if a.dir, err = os.MkdirTemp("", "contiv-bench-services-"); err != nil {
		return nil, err
	}
	socket, err := a.startEtcd(ctx)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(a.dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, kubeapi.Kubeconfig(apiAddress), 0o600); err != nil {
		return nil, err
	}
	near, _ := testbed.UplinkAddress(0)
	nic := testbed.UplinkNIC
	opts := testbed.NodeOptions{
		Name: benchNode, BinDir: a.env.bin, Dataplane: a.dataplane,
		AgentArgs: []string{"--etcd-endpoints=" + socket, "--warm-pool=0", "--kubeconfig=" + kubeconfig},
		BeforeVPP: plug,
	}
	switch a.dataplane {
	case "vpp":
		nic = "host-" + nic
		opts.VPP = &vpptest.Options{HeapMB: 2048, Buffers: 16384, Vhostshim: !hasVhost(), Plugin: a.plugin}
	default:
		opts.AgentArgs = append(opts.AgentArgs, "--linux-backend="+a.filter)
		opts.BeforeVPP = func(ctx context.Context, ns *netns.Namespace) error {
			return errors.Join(plug(ctx, ns), address(ctx, ns))
		}
	}
	opts.Config = fmt.Sprintf(agentConfig, nic, near)
	if a.node, err = testbed.NewNode(ctx, opts); err != nil {
		return nil, err
	}
	return a.node.Namespace, nil
}

// startEtcd starts etcd with the record of the endpoints' node.
func (a *agentSide) startEtcd(ctx context.Context) (socket string, err error) {
	a.etcd, err = clusterdb.StartEmbedded(ctx, clusterdb.Config{Embedded: clusterdb.EmbeddedConfig{DataDir: a.dir}},
		slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	socket = "unix://" + filepath.Join(a.dir, "etcd.sock")
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{socket}, DialTimeout: 5 * time.Second})
	if err != nil {
		return "", err
	}
	defer client.Close()
	far, _ := testbed.UplinkAddress(1)
	record := fmt.Sprintf(`{"id":2,"name":"%s","ip_addresses":["%s/24"]}`, endpointNode, far)
	_, err = client.Put(ctx, clusterdb.KSRPrefix+"allocatedIDs/2", record)
	return socket, err
}

func (a *agentSide) start(ctx context.Context) (*netns.Process, error) {
	err := a.node.LaunchAgent(ctx)
	return a.node.Agent, err
}

func (a *agentSide) close(ctx context.Context) error {
	var errs []error
	if a.node != nil {
		errs = append(errs, a.node.Close(ctx))
	}
	if a.etcd != nil {
		a.etcd.Close()
	}
	return errors.Join(append(errs, os.RemoveAll(a.dir))...)
}

// parseScale parses the numbers of services.
func (s *serviceSizes) parseScale(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > mostServices {
			return fmt.Errorf("%q is not a number from 1 to %d", word, mostServices)
		}
		s.scale = append(s.scale, n)
	}
	return nil
}

// validate rejects sizes for which there are not enough addresses.
func (s serviceSizes) validate() error {
	var wrong []string
	if s.services < 1 || s.endpoints < 1 || s.changes < 1 {
		wrong = append(wrong, "numbers below 1")
	}
	if max(s.services, s.among) > mostServices {
		wrong = append(wrong, fmt.Sprintf("more than %d services", mostServices))
	}
	if len(wrong) > 0 {
		return errors.New("services benchmark: " + strings.Join(wrong, ", "))
	}
	return nil
}
