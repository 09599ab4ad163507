package nodesync

import (
	"net"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
)

// kubeNode returns a Node object with addresses.
func kubeNode(name string, addrs ...string) *model.Node {
	return &model.Node{Name: name, Addresses: addrs}
}

// changeKube passes the change of a Node object to the node; nil means that there is none.
func (n *testNode) changeKube(name string, prev, next *model.Node) {
	n.t.Helper()
	ev := &controller.KubeStateChange{Resource: model.NodeKeyword, Key: model.Key(model.NodeKeyword, "", name)}
	for value, to := range map[*model.Node]*proto.Message{prev: &ev.PrevValue, next: &ev.NewValue} {
		if value != nil {
			*to = value
		}
	}
	if _, err := n.Update(ev, nil); err != nil {
		n.t.Fatal(err)
	}
}

// resyncWith runs a resync with Node objects in addition to the database's records.
func (n *testNode) resyncWith(nodes ...*model.Node) {
	n.t.Helper()
	data := n.db.snapshot(n.t)
	data[model.NodeKeyword] = controller.KeyValuePairs{}
	for _, node := range nodes {
		data[model.NodeKeyword][model.Key(model.NodeKeyword, "", node.GetName())] = node
	}
	ev := &controller.DBResync{KubeState: data}
	if err := n.Resync(ev, ev.KubeState, 1, nil); err != nil {
		n.t.Fatal(err)
	}
}

func (n *testNode) expectNode(name, want string) {
	n.t.Helper()
	if got := n.GetAllNodes()[name].String(); got != want {
		n.t.Errorf("node %s is %q, want %q", name, got, want)
	}
}

func (n *testNode) expectUpdates(what string, want ...string) {
	n.t.Helper()
	got := n.loop.take()
	if len(got) != len(want) {
		n.t.Fatalf("%s: events %q, want %q", what, got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			n.t.Errorf("%s: event %q, want %q", what, got[i], want[i])
		}
	}
}

// TestKubernetesAddresses checks that the addresses of Node objects are management addresses, after those that the node's agent has
// published, without duplicates, from a resync and by changes, in any order of the two sources.
func TestKubernetesAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newNode(t, "a", db)
		defer n.start()()
		b := owned(2, "b", 1, "192.168.16.2/24")
		b.MgmtAddresses = []string{"10.0.0.2"}
		db.put(t, b)
		kubeB := kubeNode("b", "10.0.0.2", "fd00::2", "203.0.113.2")
		n.resyncWith(kubeNode("a", "10.0.0.1"), kubeB, kubeNode("c", "10.0.0.3"))
		n.expectNode("b", "ID 2, VPP 192.168.16.2/24, mgmt 10.0.0.2, mgmt fd00::2, mgmt 203.0.113.2")
		n.expectNode("a", "ID 1, mgmt 10.0.0.1")
		if nodes := n.GetAllNodes(); nodes["c"] != nil {
			t.Errorf("a Node object without an ID is a node: %v", nodes["c"])
		}
		n.expectUpdates("resync")

		// Of another node.
		now := kubeNode("b", "10.0.0.2", "fd00::22")
		n.changeKube("b", kubeB, now)
		n.expectUpdates("other addresses", "Node Update: b changed from (ID 2, VPP 192.168.16.2/24, mgmt 10.0.0.2, mgmt fd00::2, mgmt 203.0.113.2)"+
			" to (ID 2, VPP 192.168.16.2/24, mgmt 10.0.0.2, mgmt fd00::22)")
		labelled := kubeNode("b", "10.0.0.2", "fd00::22")
		labelled.Labels = map[string]string{"zone": "z"}
		n.changeKube("b", now, labelled)
		n.expectUpdates("a label changes no node")
		n.changeKube("b", labelled, nil)
		n.expectUpdates("Node object deleted", "Node Update: b changed from (ID 2, VPP 192.168.16.2/24, mgmt 10.0.0.2, mgmt fd00::22)"+
			" to (ID 2, VPP 192.168.16.2/24, mgmt 10.0.0.2)")

		// Of this one: NodeUpdate reports its management addresses, too.
		n.changeKube("a", kubeNode("a", "10.0.0.1"), kubeNode("a", "10.0.0.1", "203.0.113.1"))
		n.expectUpdates("own", "Node Update: a changed from (ID 1, mgmt 10.0.0.1) to (ID 1, mgmt 10.0.0.1, mgmt 203.0.113.1)")

		// The record of c arrives after its Node object.
		if err := n.change(3, nil, owned(3, "c", 1)); err != nil {
			t.Fatal(err)
		}
		n.expectUpdates("record behind", "Node Update: c joined (ID 3, mgmt 10.0.0.3)")
		n.changeKube("d", nil, kubeNode("d", "10.0.0.4"))
		n.expectUpdates("no record")
	})
}

// TestHostIPs checks that only addresses of a node's own interfaces are returned, and that they stay known while the database has lost the
// node's record.
func TestHostIPs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		n := newMachine(t, "a", db, &memoryIdentity{})
		defer n.start()()
		b := owned(2, "b", 1)
		b.MgmtAddresses = []string{"10.0.0.2"}
		db.put(t, b)
		db.put(t, owned(3, "c", 1)) // publishes none
		kube := []*model.Node{kubeNode("b", "10.0.0.2", "203.0.113.2"), kubeNode("c", "10.0.0.3")}
		expect := func(name string, want string) {
			t.Helper()
			if got := n.HostIPs(n.GetAllNodes()[name]); len(got) != 1 || !got[0].Equal(net.ParseIP(want)) {
				t.Errorf("of %s: %v, want %s", name, got, want)
			}
		}
		n.resyncWith(kube...)
		expect("b", "10.0.0.2")
		expect("c", "10.0.0.3")
		db.Delete(fullKey(2))
		n.resyncWith(kube...)
		n.expectNode("b", "ID 2, mgmt 10.0.0.2, mgmt 203.0.113.2")
		expect("b", "10.0.0.2")
		if err := n.PublishNodeIPs(nil, contivconf.IPv4); err != nil {
			t.Fatal(err)
		}
	})
}
