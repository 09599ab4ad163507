package ipnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
	"contiv.dev/vswitch/plugins/controller"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
)

// fakeNodes is a cluster.
type fakeNodes struct {
	id        uint32
	all       nodesync.Nodes
	published contivconf.IPsWithNetworks
}

func (n *fakeNodes) GetNodeID() uint32           { return n.id }
func (n *fakeNodes) GetAllNodes() nodesync.Nodes { return n.all }
func (n *fakeNodes) PublishNodeIPs(ips contivconf.IPsWithNetworks, _ contivconf.IPVersion) error {
	n.published = append(n.published, ips...)
	return nil
}

// fakePods keeps attachments in memory.
type fakePods struct {
	list []*podmanager.Attachment
	fail error
}

func (p *fakePods) LocalAttachments() []*podmanager.Attachment { return p.list }

func (p *fakePods) Current(pod podmanager.PodID) (*podmanager.Attachment, bool) {
	for i := len(p.list) - 1; i >= 0; i-- {
		if p.list[i].Pod == pod {
			return p.list[i], true
		}
	}
	return nil, false
}

func (p *fakePods) SetAddresses(id podmanager.AttachmentID, addrs []netip.Prefix) error {
	if p.fail != nil {
		return p.fail
	}
	i := slices.IndexFunc(p.list, func(a *podmanager.Attachment) bool { return a.ID == id })
	if i < 0 {
		return errors.New("no such attachment")
	}
	a := *p.list[i]
	a.Addresses = addrs
	p.list[i] = &a
	return nil
}

// desired is a transaction that becomes the desired state.
type desired map[string]proto.Message

func (d desired) Put(key string, v proto.Message) { d[key] = v }
func (d desired) Get(key string) proto.Message    { return d[key] }
func (d desired) Delete(key string)               { delete(d, key) }

// node is an ipnet with real ipam and configuration.
type node struct {
	t     *testing.T
	n     *IPNet
	ipam  *ipam.IPAM
	nodes *fakeNodes
	pods  *fakePods
	want  desired
}

func newNode(t *testing.T, config string) *node {
	t.Helper()
	return newNodeWithID(t, config, 1)
}

func newNodeWithID(t *testing.T, config string, id uint32) *node {
	t.Helper()
	name := fmt.Sprintf("n%d", id)
	conf, err := conffile.Load([]byte(config), contivconf.Env{NodeName: name})
	if err != nil {
		t.Fatal(err)
	}
	w := &node{t: t, nodes: &fakeNodes{id: id, all: nodesync.Nodes{}}, pods: &fakePods{}, want: desired{}}
	w.ipam = ipam.NewPlugin(ipam.Deps{ContivConf: conf, NodeSync: w.nodes, PodManager: w.pods})
	w.n = NewPlugin(UseDeps(func(d *Deps) {
		d.ServiceLabel, d.ContivConf, d.IPAM = servicelabel.Label(name), conf, w.ipam
		d.NodeSync, d.PodManager = w.nodes, w.pods
	}))
	if err := w.n.Init(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.n.Close(); err != nil {
			t.Error(err)
		}
	})
	w.n.hostIPsDump = func() ([]net.IP, error) { return []net.IP{net.ParseIP("192.0.2.10")}, nil }
	w.resync()
	return w
}

func (w *node) resync() {
	w.t.Helper()
	ev := w.event()
	w.want = desired{}
	for _, h := range []api.EventHandler{w.ipam, w.n} {
		if err := h.Resync(ev, nil, 1, w.want); err != nil {
			w.t.Fatalf("%s: %v", h, err)
		}
	}
}

func (w *node) event() api.Event { return api.NewDBResync() }

// add handles a CNI ADD as the controller dispatches it.
func (w *node) add(name string) *podmanager.AddPod {
	w.t.Helper()
	return w.addWithMTU(name, 0)
}

// addWithMTU handles an ADD whose network configuration sets an MTU.
func (w *node) addWithMTU(name string, mtu int) *podmanager.AddPod {
	w.t.Helper()
	a := &podmanager.Attachment{
		ID: podmanager.AttachmentID{ContainerID: "c-" + name, IfName: "eth0"}, Netns: "/run/netns/" + name,
		Pod: podmanager.PodID{Namespace: "default", Name: name}, Seq: uint64(len(w.pods.list) + 1), MTU: mtu,
	}
	w.pods.list = append(w.pods.list, a)
	ev := podmanager.NewAddPod(a)
	for _, h := range []api.EventHandler{w.ipam, w.n} {
		if _, err := h.Update(ev, w.want); err != nil {
			w.t.Fatalf("%s: %v", h, err)
		}
	}
	return ev
}

// apply programs the desired state into a fake VPP.
func (w *node) apply() *vppfake.Fake {
	t := w.t
	t.Helper()
	fake := vppfake.New(vppfake.Config{Seed: 1, Plugin: w.n.HasPlugin()})
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := fake.Listen(socket); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(t.Context(), log)
	c := conn.New(conn.Config{Socket: socket}, log)
	c.Start(jobs)
	lane := c.Lane()
	s := scheduler.New(scheduler.Config{Backends: []scheduler.Backend{lane}, Jobs: jobs}, log)
	devices := func(logical string) (string, bool) { return "dev-" + logical[:min(10, len(logical))], true }
	if err := vpp.Register(s, vpp.Deps{Lane: lane, Index: iface.NewIndex(),
		Interfaces: iface.Deps{LinuxDevice: devices, Segments: w.n.HasPlugin}}); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{nb.LinuxInterfacePrefix, nb.LinuxARPPrefix, nb.LinuxRoutePrefix} {
		registerLinux(t, s, prefix)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); c.Close(); _ = jobs.Stop(time.Minute); _ = fake.Close() })
	for end := time.Now().Add(5 * time.Second); !c.State().Connected(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the fake does not respond")
		}
	}
	var kvs []txn.KV
	for key, v := range w.want {
		kvs = append(kvs, txn.KV{Key: key, Value: v})
	}
	rec, err := s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs})
	if err != nil || len(rec.Pending) > 0 {
		t.Fatalf("commit: %v, pending %v", err, rec.Pending)
	}
	if rec, err = s.Commit(t.Context(), &txn.Txn{Kind: txn.FullResync, Values: kvs}); err != nil || len(rec.Executed) > 0 {
		t.Fatalf("a second resync with nothing changed: %v\n%s", err, rec)
	}
	return fake
}

// registerLinux replaces dataplane/links: this test needs only the packets of VPP.
func registerLinux(t *testing.T, s *scheduler.Scheduler, prefix string) {
	t.Helper()
	err := scheduler.Register(s, scheduler.Descriptor[proto.Message]{
		Name: prefix, Prefix: prefix, Rank: scheduler.RankHostLink,
		Equal:  func(_ string, a, b proto.Message) bool { return proto.Equal(a, b) },
		Create: func(op *scheduler.Op, _ string, _ proto.Message) { op.Done(nil) },
		Delete: func(op *scheduler.Op, _ string, _ proto.Message) { op.Done(nil) },
	})
	if err != nil {
		t.Fatal(err)
	}
}

const (
	dualTAP  = "useTAPInterfaces: true\nipamConfig:\n  podSubnetCIDR: 10.1.0.0/16,fd10:1::/48\n  podSubnetOneNodePrefixLen: 24,64\n"
	dualVETH = "useTAPInterfaces: false\nipamConfig:\n  podSubnetCIDR: 10.1.0.0/16,fd10:1::/48\n  podSubnetOneNodePrefixLen: 24,64\n"
)

func mac(t *testing.T, hw net.HardwareAddr) (m vppfake.MAC) {
	t.Helper()
	if copy(m[:], hw) != 6 {
		t.Fatalf("%s is no MAC address", hw)
	}
	return m
}

func TestWhatHappensToPackets(t *testing.T) {
	for name, config := range map[string]string{"tap": dualTAP, "veth": dualVETH, "no overlay": dualTAP + "\nnodeToNodeTransport: nooverlay\n"} {
		t.Run(name, func(t *testing.T) {
			w := newNode(t, config)
			a, b := w.add("a"), w.add("b")
			fake := w.apply()
			podA, podB := w.n.pods[a.Attachment.ID], w.n.pods[b.Attachment.ID]
			inVPP, _ := w.n.settings.hostLinkNames()
			for i, family := range []string{"v4", "v6"} {
				host := w.n.settings.hostLinks[i].Host.Addr()
				for _, tc := range []struct {
					what    string
					dst     netip.Addr
					out     string // interface; "" means that the packet is dropped
					wantMAC net.HardwareAddr
				}{
					{"to the other pod", b.IPs[i].Address.Addr(), podB.names.vpp, podB.mac},
					{"to itself", a.IPs[i].Address.Addr(), podA.names.vpp, podA.mac},
					{"to the host's end of the link", host, inVPP, nodeMAC(macHostLinkLinux, 1)},
					{"to an unused pod address", a.IPs[i].Address.Addr().Next().Next().Next(), "", nil},
					{"to the outside, without a default gateway", outside(i), "", nil},
				} {
					got, err := fake.Send("cv:"+podA.names.vpp, vppfake.Packet{
						EthSrc: mac(t, podA.mac), EthDst: mac(t, podA.peerMAC), Src: a.IPs[i].Address.Addr(), Dst: tc.dst,
						Proto: vppfake.ProtoUDP, SrcPort: 1000, DstPort: 2000, Size: 100,
					})
					if err != nil {
						t.Fatalf("%s %s: %v", family, tc.what, err)
					}
					check(t, family+" "+tc.what, got, tc.out, tc.wantMAC)
				}
			}
			// the host's own address is reached through the link, from a pod
			got, err := fake.Send("cv:"+podA.names.vpp, vppfake.Packet{
				EthSrc: mac(t, podA.mac), EthDst: mac(t, podA.peerMAC), Src: a.IPs[0].Address.Addr(),
				Dst: netip.MustParseAddr("192.0.2.10"), Proto: vppfake.ProtoUDP, Size: 10,
			})
			if err != nil {
				t.Fatal(err)
			}
			check(t, "to the host's own address", got, inVPP, nodeMAC(macHostLinkLinux, 1))
			// and a pod is reached from the host
			got, err = fake.Send("cv:"+inVPP, vppfake.Packet{
				EthSrc: mac(t, nodeMAC(macHostLinkLinux, 1)), EthDst: mac(t, nodeMAC(macHostLinkVPP, 1)),
				Src: w.n.settings.hostLinks[0].Host.Addr(), Dst: b.IPs[0].Address.Addr(), Proto: vppfake.ProtoTCP, Size: 10,
			})
			if err != nil {
				t.Fatal(err)
			}
			check(t, "from the host", got, podB.names.vpp, podB.mac)
		})
	}
}

func outside(family int) netip.Addr {
	return []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db8::1")}[family]
}

func check(t *testing.T, what string, got vppfake.Result, out string, hw net.HardwareAddr) {
	t.Helper()
	if out == "" {
		if _, dropped := got.Dropped(); !dropped {
			t.Errorf("%s: delivered, want a drop:\n%s", what, strings.Join(got.Walk, "\n"))
		}
		return
	}
	d, ok := got.Delivered()
	if !ok || !strings.HasSuffix(d.Tag, out) || d.Packet.EthDst != mac(t, hw) {
		t.Errorf("%s: %+v, want it delivered on %s to %s:\n%s", what, got.Out, out, hw, strings.Join(got.Walk, "\n"))
	}
}

// TestPodByInterface checks that a pod is found by each of the names that GetPodIfNames returns, and by none after it is deleted.
func TestPodByInterface(t *testing.T) {
	for _, config := range []string{dualTAP, strings.Replace(dualTAP, "UseTAPInterfaces: true", "UseTAPInterfaces: false", 1)} {
		w := newNode(t, config)
		ev := w.add("a")
		vpp, linux, loop, ok := w.n.GetPodIfNames("default", "a")
		if !ok {
			t.Fatal("the pod has no interfaces")
		}
		w.resync()
		for _, name := range []string{vpp, linux, loop} {
			if ns, pod, ok := w.n.GetPodByIf(name); !ok || ns != "default" || pod != "a" {
				t.Errorf("%s is of %s/%s, %t", name, ns, pod, ok)
			}
		}
		w.n.Update(podmanager.NewDeletePod(ev.Attachment), w.want)
		for _, name := range []string{vpp, linux, loop} {
			if _, _, ok := w.n.GetPodByIf(name); ok {
				t.Errorf("%s still leads to the deleted pod", name)
			}
		}
	}
}

// TestHandlesEvent checks the documented list of events.
func TestHandlesEvent(t *testing.T) {
	w := newNode(t, dualTAP)
	a := &podmanager.Attachment{}
	for want, events := range map[bool][]api.Event{
		true: {api.NewDBResync(), &NodeIPv4Change{}, podmanager.NewAddPod(a), podmanager.NewDeletePod(a), &nodesync.NodeUpdate{NodeName: "other"},
			&api.KubeStateChange{Resource: model.PodKeyword}, &controller.Shutdown{}},
		false: {&nodesync.NodeUpdate{NodeName: "n1"}, &api.KubeStateChange{Resource: model.NamespaceKeyword}},
	} {
		for _, ev := range events {
			if w.n.HandlesEvent(ev) != want {
				t.Errorf("%T %s: handled %t", ev, ev.GetName(), !want)
			}
		}
	}
}

// TestUpdatesEqualResync checks that updates in any order give the same result as a resync, also after they are reverted.
func TestUpdatesEqualResync(t *testing.T) {
	w := newNode(t, dualTAP)
	before := texts(w.want)
	w.add("a")
	b := w.add("b")
	w.add("c")
	updated := texts(w.want)
	w.resync()
	if got := texts(w.want); !slices.Equal(got, updated) {
		t.Errorf("a resync gives\n%s\nupdates gave\n%s", strings.Join(got, "\n"), strings.Join(updated, "\n"))
	}
	for _, a := range slices.Clone(w.pods.list) {
		ev := podmanager.NewDeletePod(a)
		for _, h := range []api.EventHandler{w.n, w.ipam} {
			if _, err := h.Update(ev, w.want); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := texts(w.want); !slices.Equal(got, before) {
		t.Errorf("after all pods are gone\n%s\nremains, want\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
	}
	if _, _, ok := w.n.GetPodByIf(podNames(b.Attachment.ID, true).vpp); ok {
		t.Error("a deleted pod is still found by its interface")
	}
}

func texts(d desired) []string {
	var out []string
	for key, v := range d {
		data, _ := nb.MarshalJSON(v)
		out = append(out, key+" "+string(data))
	}
	slices.Sort(out)
	return out
}

func TestAddResult(t *testing.T) {
	w := newNode(t, dualTAP)
	ev := w.add("a")
	if len(ev.IPs) != 2 || ev.IPs[0].Address.Bits() != 32 || ev.IPs[1].Address.Bits() != 128 {
		t.Errorf("addresses %v, want a /32 and a /128", ev.IPs)
	}
	if len(ev.Interfaces) != 1 || ev.Interfaces[0].Sandbox != "/run/netns/a" || ev.Interfaces[0].Name != "eth0" {
		t.Errorf("interfaces %+v, want eth0 in the sandbox", ev.Interfaces)
	}
	if got := ev.IPs[0].Gateway.String(); got != "10.1.1.1" {
		t.Errorf("gateway %s, want 10.1.1.1", got)
	}
	if len(ev.Routes) != 2 || ev.Routes[0].Dst.Bits() != 0 {
		t.Errorf("routes %v, want a default route of each family", ev.Routes)
	}
	first := ev.IPs[0].Address
	again := podmanager.NewAddPod(w.pods.list[0])
	if _, err := w.n.Update(again, w.want); err != nil || again.IPs[0].Address != first {
		t.Errorf("a repeated ADD: %v, %v, want %s again", again.IPs, err, first)
	}
	if err := w.n.Revert(again); err != nil {
		t.Fatal(err)
	}
	if _, _, _, ok := w.n.GetPodIfNames("default", "a"); !ok {
		t.Error("reverting a repeated ADD disconnected the pod")
	}
}

func TestFailedAddLeavesNothing(t *testing.T) {
	w := newNode(t, dualTAP)
	w.pods.fail = errors.New("disk full")
	a := &podmanager.Attachment{ID: podmanager.AttachmentID{ContainerID: "c", IfName: "eth0"}, Netns: "/run/netns/x"}
	ev := podmanager.NewAddPod(a)
	if _, err := w.ipam.Update(ev, w.want); err != nil {
		t.Fatal(err)
	}
	if _, err := w.n.Update(ev, w.want); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Fatalf("error %v, want that of the store", err)
	}
	for _, h := range []api.EventHandler{w.n, w.ipam} {
		if err := h.Revert(ev); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.ipam.PodIPs(a.ID); len(got) != 0 {
		t.Errorf("addresses %v are lost", got)
	}
	if len(w.n.pods) != 0 || len(w.n.KeysOf(a.ID)) != 0 {
		t.Error("ipnet still knows the pod")
	}
}

func TestREST(t *testing.T) {
	w := newNode(t, "useTAPInterfaces: false\n")
	rec := httptest.NewRecorder()
	w.n.serveIPAM(rec, httptest.NewRequest("GET", rest.IPAMPath, nil))
	var got map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"nodeId": 1.0, "nodeName": "n1", "nodeIP": "192.168.16.1", "podSubnetThisNode": "10.1.1.0/24", "vppHostNetwork": "172.30.1.0/24",
	}
	if len(got) != len(want) {
		t.Errorf("keys %v, want exactly those of %v", got, want)
	}
	for key, v := range want {
		if got[key] != v {
			t.Errorf("%s: %v, want %v", key, got[key], v)
		}
	}
	if len(w.nodes.published) != 1 || w.nodes.published[0].Address.String() != "192.168.16.1" {
		t.Errorf("published %v, want the interconnect address", w.nodes.published)
	}
	fresh := NewPlugin()
	rec = httptest.NewRecorder()
	fresh.serveIPAM(rec, httptest.NewRequest("GET", rest.IPAMPath, nil))
	if rec.Code != 503 {
		t.Errorf("before the start-up resync: %d, want 503", rec.Code)
	}
}

func TestNamesAndMACs(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4)
	seen := map[string]bool{}
	for _, id := range []podmanager.AttachmentID{
		{ContainerID: long, IfName: "eth0"}, {ContainerID: long, IfName: "eth1"},
		{ContainerID: long[:63] + "x", IfName: "eth0"}, {ContainerID: "short", IfName: "eth0"},
	} {
		for _, tap := range []bool{true, false} {
			n := podNames(id, tap)
			for _, name := range []string{n.vpp, n.linux} {
				if len(name) > 60 || seen[name] {
					t.Errorf("%v: name %q is too long or not unique", id, name)
				}
				seen[name] = true
			}
			if len(n.hostDev) > 15 {
				t.Errorf("%v: device name %q is too long", id, n.hostDev)
			}
		}
		m := podMAC(id)
		if m[0]&1 != 0 || m.String()[:5] != "02:fe" || slices.Equal(m, peerMAC(m)) {
			t.Errorf("%v: MAC %s", id, m)
		}
	}
}
