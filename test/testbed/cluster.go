package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/test/testbed/netns"
)

// Cluster is a number of nodes on two networks, each a bridge in its own namespace: one that connects nodes (NIC of every node: UplinkNIC)
// and one for management (MgmtNIC). The nodes share an etcd, which listens on a socket and so does not depend on a network.
type Cluster struct {
	Underlay *netns.Namespace
	Nodes    []*Node

	opts ClusterOptions
	dir  string
	etcd *clusterdb.Embedded
	slow map[int]*slowLine // delays of the nodes' uplinks
}

// The NICs of a node.
const (
	UplinkNIC = "eth1"
	MgmtNIC   = "eth0"
)

// UplinkMTU is the MTU of the network that connects nodes.
const UplinkMTU = 1500

// ClusterOptions describe a cluster.
type ClusterOptions struct {
	Name  string // short; prefix of the names of all namespaces
	Nodes int
	// Node are the options of each node; name and etcd are filled in.
	Node NodeOptions
	// ConfigOf returns contiv.conf of the i-th node (from 0).
	ConfigOf func(i int) string
	// Unstarted leaves the start of the agents to the caller.
	Unstarted bool
	// Addressed gives the uplink NICs the addresses of UplinkAddress, as the operator of Linux nodes does.
	Addressed bool
	// NoIPv4 leaves out the IPv4 addresses.
	NoIPv4 bool
}

// NewCluster makes the networks, etcd and the nodes, and starts an agent on each node, unless Unstarted is set.
func NewCluster(ctx context.Context, opts ClusterOptions) (*Cluster, error) {
	c := &Cluster{opts: opts, slow: map[int]*slowLine{}}
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	for range opts.Nodes {
		if _, err := c.AddNode(ctx); err != nil {
			return nil, errors.Join(err, c.Close(ctx))
		}
	}
	return c, nil
}

func (c *Cluster) prepare(ctx context.Context) (err error) {
	if c.dir, err = os.MkdirTemp("", "contiv-"+c.opts.Name+"-"); err != nil {
		return err
	}
	if c.Underlay, err = netns.New(ctx, c.opts.Name+"-net"); err != nil {
		return err
	}
	bridge := "link add %s up mtu " + strconv.Itoa(UplinkMTU) + " type bridge"
	if err := c.Underlay.IP(ctx, fmt.Sprintf(bridge, "uplink"), fmt.Sprintf(bridge, "mgmt")); err != nil {
		return err
	}
	return c.StartEtcd(ctx)
}

// StartEtcd starts etcd, with its earlier data.
func (c *Cluster) StartEtcd(ctx context.Context) (err error) {
	c.etcd, err = clusterdb.StartEmbedded(ctx, c.etcdConfig(), slog.New(slog.DiscardHandler))
	return err
}

// StopEtcd stops etcd.
func (c *Cluster) StopEtcd() {
	if c.etcd != nil {
		c.etcd.Close()
		c.etcd = nil
	}
}

// EtcdDir returns the folder of etcd's data.
func (c *Cluster) EtcdDir() string { return filepath.Join(c.dir, "etcd") }

func (c *Cluster) etcdConfig() clusterdb.Config {
	return clusterdb.Config{Embedded: clusterdb.EmbeddedConfig{DataDir: c.EtcdDir()}}
}

// UplinkAddress returns the addresses of the i-th node (from 0) on the network that connects nodes.
func UplinkAddress(i int) (v4, v6 string) {
	return fmt.Sprintf("192.168.16.%d", 101+i), fmt.Sprintf("fd00:16::%x", 101+i)
}

// MgmtAddress returns the address of the i-th node (from 0) on the management network.
func MgmtAddress(i int) string { return fmt.Sprintf("10.199.0.%d", 101+i) }

// NodeName returns the name of the i-th node (from 0) of a cluster.
func NodeName(cluster string, i int) string { return fmt.Sprintf("%s-n%d", cluster, i+1) }

// AddNode adds a node to the cluster, with an agent.
func (c *Cluster) AddNode(ctx context.Context) (*Node, error) {
	i := len(c.Nodes)
	opts := c.opts.Node
	opts.Name = NodeName(c.opts.Name, i)
	if c.opts.ConfigOf != nil {
		opts.Config = c.opts.ConfigOf(i)
	}
	opts.AgentArgs = append([]string{"--etcd-endpoints=unix://" + filepath.Join(c.EtcdDir(), "etcd.sock")}, opts.AgentArgs...)
	opts.BeforeVPP = func(ctx context.Context, ns *netns.Namespace) error { return c.plug(ctx, ns, i) }
	n, err := NewNode(ctx, opts)
	if err != nil {
		return nil, err
	}
	c.Nodes = append(c.Nodes, n)
	if c.opts.Unstarted {
		return n, nil
	}
	start, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return n, n.StartAgent(start)
}

// plug connects a node's namespace with both networks.
func (c *Cluster) plug(ctx context.Context, ns *netns.Namespace, i int) error {
	mtu := strconv.Itoa(UplinkMTU)
	var cables, addrs []string
	for nic, bridge := range map[string]string{UplinkNIC: "uplink", MgmtNIC: "mgmt"} {
		port := portName(bridge, i)
		cables = append(cables, "link add "+port+" mtu "+mtu+" type veth peer name "+nic+" mtu "+mtu+" netns "+ns.Name,
			"link set "+port+" master "+bridge+" up")
		addrs = append(addrs, "link set "+nic+" up")
	}
	addrs = append(addrs, "addr add "+MgmtAddress(i)+"/24 dev "+MgmtNIC)
	if c.opts.Addressed {
		v4, v6 := UplinkAddress(i)
		addrs = append(addrs, "addr add "+v6+"/64 nodad dev "+UplinkNIC)
		if !c.opts.NoIPv4 {
			addrs = append(addrs, "addr add "+v4+"/24 dev "+UplinkNIC)
		}
	}
	if err := c.Underlay.IP(ctx, cables...); err != nil {
		return err
	}
	return ns.IP(ctx, addrs...)
}

func portName(bridge string, i int) string { return fmt.Sprintf("%s%d", bridge, i+1) }

// Cut disconnects the i-th node (from 0) from the network that connects nodes; Mend connects it again.
func (c *Cluster) Cut(ctx context.Context, i int) error { return c.setPort(ctx, i, "down") }

// Mend undoes Cut.
func (c *Cluster) Mend(ctx context.Context, i int) error { return c.setPort(ctx, i, "up") }

func (c *Cluster) setPort(ctx context.Context, i int, state string) error {
	_, err := c.Underlay.Run(ctx, "ip", "link", "set", portName("uplink", i), state)
	return err
}

// Close stops everything and removes it.
func (c *Cluster) Close(ctx context.Context) error {
	var errs []error
	for _, line := range c.slow {
		errs = append(errs, line.stop())
	}
	for _, n := range c.Nodes {
		errs = append(errs, n.Close(ctx))
	}
	c.StopEtcd()
	if c.Underlay != nil {
		errs = append(errs, c.Underlay.Delete(ctx))
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}
