package ipnet

import (
	"net"
	"net/netip"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// TestNodes holds two nodes with a pod each, for tests of other packages that add values to a node.
type TestNodes struct {
	one, two *node
	PodA     TestPod // on the first node
	PodB     TestPod // on the second node
}

// TestPod is a pod.
type TestPod struct {
	If      string // logical name of its interface in VPP
	Addr    netip.Addr
	MAC     net.HardwareAddr
	PeerMAC net.HardwareAddr
}

// NewTestNodes returns the nodes, which have each other as peers. config is added to the configuration of all nodes.
func NewTestNodes(t *testing.T, config string) *TestNodes {
	t.Helper()
	n := &TestNodes{one: newNodeWithID(t, config+dualTAP+uplink, 1), two: newNodeWithID(t, config+dualTAP+uplink, 2)}
	n.one.node("n2", fakePeer(2))
	n.two.node("n1", fakePeer(1))
	pod := func(w *node, name string) TestPod {
		ev := w.add(name)
		link := w.n.pods[ev.Attachment.ID]
		return TestPod{link.names.vpp, ev.IPs[0].Address.Addr(), link.mac, link.peerMAC}
	}
	n.PodA, n.PodB = pod(n.one, "a"), pod(n.two, "b")
	n.one.resolved(2)
	n.two.resolved(1)
	return n
}

// First returns the plugin of the first node and its desired state, to which callers may add values before Apply.
func (n *TestNodes) First() (*IPNet, map[string]proto.Message) { return n.one.n, n.one.want }

// ApplyFirst programs the first node into a fake that is not connected.
func (n *TestNodes) ApplyFirst() *vppfake.Fake { return n.one.apply() }

// Apply programs both nodes into fakes that are connected by a wire.
func (n *TestNodes) Apply() (one, two *vppfake.Fake) {
	one, two = n.one.apply(), n.two.apply()
	vppfake.Wire(one, "cv:host-eth1", two, "cv:host-eth1")
	return one, two
}
