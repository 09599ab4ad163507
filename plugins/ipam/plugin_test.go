package ipam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
)

type nodeID uint32

func (n *nodeID) GetNodeID() uint32 { return uint32(*n) }

type attachments struct{ list []*podmanager.Attachment }

func (a *attachments) LocalAttachments() []*podmanager.Attachment { return a.list }

type mux map[string]http.HandlerFunc

func (m mux) RegisterHTTPHandler(path string, h http.HandlerFunc, _ ...string) { m[path] = h }

type fixture struct {
	*IPAM
	t    *testing.T
	node nodeID
	pods *attachments
	rest mux
	log  *bytes.Buffer
}

func newFixture(t *testing.T, file contivconf.File) *fixture {
	t.Helper()
	conf, err := contivconf.New(file, contivconf.Env{NodeName: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, node: 1, pods: &attachments{}, rest: mux{}, log: &bytes.Buffer{}}
	plugin := infra.PluginDeps{Log: slog.New(slog.NewTextHandler(f.log, nil))}
	f.IPAM = NewPlugin(Deps{PluginDeps: plugin, ContivConf: conf, NodeSync: &f.node, PodManager: f.pods, HTTPHandlers: f.rest})
	return f
}

func dualStack() contivconf.File {
	return contivconf.File{IPAMConfig: contivconf.IPAMOptions{
		PodSubnetCIDR: new("10.1.0.0/16,fd10:1::/48"), DefaultGateway: new("192.168.16.100"),
	}}
}

// tiny has slices with room for four pods.
func tiny() contivconf.File {
	return contivconf.File{IPAMConfig: contivconf.IPAMOptions{
		PodSubnetCIDR: new("10.1.0.0/16"), PodSubnetOneNodePrefixLen: &contivconf.Lengths{29},
	}}
}

func (f *fixture) resync(count int) error {
	return f.Resync(api.NewDBResync(), nil, count, nil)
}

func (f *fixture) mustResync(count int) {
	f.t.Helper()
	if err := f.resync(count); err != nil {
		f.t.Fatalf("Resync: %v", err)
	}
}

func id(n int) podmanager.AttachmentID {
	return podmanager.AttachmentID{ContainerID: fmt.Sprintf("c%d", n), IfName: "eth0"}
}

func attachment(n int, ips ...string) *podmanager.Attachment {
	a := &podmanager.Attachment{ID: id(n), Pod: podmanager.PodID{Namespace: "default", Name: fmt.Sprintf("pod%d", n)}, Seq: uint64(n)}
	for _, ip := range ips {
		x := addr(ip)
		a.Addresses = append(a.Addresses, netip.PrefixFrom(x, x.BitLen()))
	}
	return a
}

func (f *fixture) allocate(n int) []netip.Addr {
	f.t.Helper()
	ips, err := f.AllocatePodIPs(id(n))
	if err != nil {
		f.t.Fatalf("AllocatePodIPs: %v", err)
	}
	return ips
}

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, addr(s))
	}
	return out
}

func (f *fixture) want(got []netip.Addr, want ...string) {
	f.t.Helper()
	if !reflect.DeepEqual(got, addrs(want...)) {
		f.t.Errorf("got %v, want %v", got, want)
	}
}

func TestBeforeResync(t *testing.T) {
	f := newFixture(t, contivconf.File{})
	if _, err := f.AllocatePodIPs(id(1)); !errors.Is(err, podmanager.ErrTryAgain) {
		t.Errorf("error %v, want ErrTryAgain", err)
	}
	f.node = 0
	if err := f.resync(1); !errors.Is(err, errNodeID0) {
		t.Errorf("Resync without a node ID: %v", err)
	}
}

func TestAllocateAndRelease(t *testing.T) {
	f := newFixture(t, dualStack())
	f.mustResync(1)
	f.want(f.allocate(1), "10.1.1.2", "fd10:1:0:1::2")
	f.want(f.allocate(1), "10.1.1.2", "fd10:1:0:1::2") // the same addresses again
	f.want(f.allocate(2), "10.1.1.3", "fd10:1:0:1::3")
	f.want(f.PodIPs(id(2)), "10.1.1.3", "fd10:1:0:1::3")
	for _, ip := range []string{"10.1.1.3", "::ffff:10.1.1.3", "fd10:1:0:1::3"} {
		if got, ok := f.AttachmentOf(addr(ip)); !ok || got != id(2) {
			t.Errorf("AttachmentOf(%s) = %v, %v", ip, got, ok)
		}
	}
	f.ReleasePodIPs(id(1))
	f.ReleasePodIPs(id(1))
	f.ReleasePodIPs(id(99))
	if got := f.PodIPs(id(1)); len(got) != 0 {
		t.Errorf("released, but has %v", got)
	}
	if _, ok := f.AttachmentOf(addr("10.1.1.2")); ok {
		t.Error("a released address belongs to an attachment")
	}
	f.want(f.allocate(3), "10.1.1.4", "fd10:1:0:1::4")
}

func TestDerivedAddresses(t *testing.T) {
	f := newFixture(t, dualStack())
	nodes, err := f.NodeIPs(100)
	if want := []netip.Prefix{prefix("192.168.16.101/24"), prefix("fd00:192:168:16::64/112")}; err != nil || !reflect.DeepEqual(nodes, want) {
		t.Errorf("NodeIPs = %v, %v, want %v", nodes, err, want)
	}
	vxlan, err := f.VxlanIPs(100)
	if want := []netip.Prefix{prefix("192.168.30.100/24"), prefix("fd00:192:168:30::64/112")}; err != nil || !reflect.DeepEqual(vxlan, want) {
		t.Errorf("VxlanIPs = %v, %v, want %v", vxlan, err, want)
	}
	links, err := f.HostInterconnect(2)
	if err != nil || len(links) != 2 || links[1].Host != prefix("fd00:172:30:2::2/64") {
		t.Errorf("HostInterconnect = %v, %v", links, err)
	}
	if _, err := f.PodSubnets(70000); err == nil {
		t.Error("PodSubnets(70000) works")
	}
	if got, ok := f.NodeIDOf(addr("fd10:1:0:17::9")); !ok || got != 0x17 {
		t.Errorf("NodeIDOf = %d, %v", got, ok)
	}
	if _, ok := f.NodeIDOf(addr("8.8.8.8")); ok {
		t.Error("NodeIDOf(8.8.8.8) is ok")
	}
	c := f.ClusterSubnets()
	if len(c.Pods) != 2 || len(c.VPPHost) != 2 || len(c.NodeInterconnect) != 2 || len(c.Vxlan) != 2 || len(c.Services) != 2 {
		t.Errorf("ClusterSubnets = %v", c)
	}
	dhcp := newFixture(t, contivconf.File{IPAMConfig: contivconf.IPAMOptions{NodeInterconnectDHCP: new(true)}})
	if ips, err := dhcp.NodeIPs(1); err != nil || len(ips) != 0 {
		t.Errorf("with DHCP NodeIPs = %v, %v", ips, err)
	}
}

func TestExhausted(t *testing.T) {
	f := newFixture(t, tiny())
	f.mustResync(1)
	for n := range 4 {
		f.allocate(n)
	}
	_, err := f.AllocatePodIPs(id(9))
	if !errors.Is(err, ErrExhausted) || !strings.Contains(err.Error(), "10.1.0.8/29") {
		t.Errorf("error %v, want ErrExhausted that names the subnet", err)
	}
	if err := f.Available(); !errors.Is(err, ErrExhausted) {
		t.Errorf("Available: %v", err)
	}
	f.ReleasePodIPs(id(2))
	if err := f.Available(); err != nil {
		t.Errorf("Available after a release: %v", err)
	}
	f.want(f.allocate(9), "10.1.0.12")

	// full, and restarted
	f.pods.list = []*podmanager.Attachment{attachment(0, "10.1.0.10"), attachment(1, "10.1.0.11"), attachment(3, "10.1.0.13"), attachment(9, "10.1.0.12")}
	f.mustResync(1)
	if _, err := f.AllocatePodIPs(id(10)); !errors.Is(err, ErrExhausted) {
		t.Errorf("error after restart %v, want ErrExhausted", err)
	}
}

// TestExhaustedFamilyReleasesTheOther checks that an attachment gets addresses of all families or none.
func TestExhaustedFamilyReleasesTheOther(t *testing.T) {
	f := newFixture(t, contivconf.File{IPAMConfig: contivconf.IPAMOptions{
		PodSubnetCIDR: new("10.1.0.0/16,fd10:1::/48"), PodSubnetOneNodePrefixLen: &contivconf.Lengths{24, 125},
	}})
	f.mustResync(1)
	for n := range 4 {
		f.allocate(n)
	}
	if _, err := f.AllocatePodIPs(id(9)); !errors.Is(err, ErrExhausted) || !strings.Contains(err.Error(), "fd10:1::8/125") {
		t.Fatalf("error %v", err)
	}
	if got := f.report().Subnets[0]; got.Used != 4 {
		t.Errorf("%d IPv4 addresses are in use, want 4", got.Used)
	}
	if got := f.PodIPs(id(9)); got != nil {
		t.Errorf("the failed attachment has %v", got)
	}
}

func TestRestart(t *testing.T) {
	f := newFixture(t, dualStack())
	f.pods.list = []*podmanager.Attachment{
		attachment(1, "10.1.1.200", "fd10:1:0:1::c8"), attachment(2), attachment(3, "10.1.1.5", "fd10:1:0:1::5"),
	}
	f.mustResync(1)
	f.want(f.PodIPs(id(1)), "10.1.1.200", "fd10:1:0:1::c8")
	f.want(f.allocate(3), "10.1.1.5", "fd10:1:0:1::5")
	f.want(f.allocate(4), "10.1.1.6", "fd10:1:0:1::6") // continues after the newest attachment, not after the highest address

	// a later resync keeps the position, whatever attachments there are
	f.ReleasePodIPs(id(4))
	f.mustResync(2)
	f.want(f.allocate(5), "10.1.1.7", "fd10:1:0:1::7")
}

// TestDualStackSwitchedOn checks that running attachments get an address of a second family on request, after the family has been
// configured.
func TestDualStackSwitchedOn(t *testing.T) {
	f := newFixture(t, dualStack())
	f.pods.list = []*podmanager.Attachment{attachment(1, "10.1.1.9")}
	f.mustResync(1)
	f.want(f.allocate(1), "10.1.1.9", "fd10:1:0:1::2")

	off := newFixture(t, contivconf.File{})
	off.pods.list = []*podmanager.Attachment{attachment(1, "10.1.1.9", "fd10:1:0:1::2")}
	off.mustResync(1)
	if !strings.Contains(off.log.String(), "fd10:1:0:1::2") {
		t.Error("an address of a family not in use is not reported")
	}
	off.want(off.allocate(1), "10.1.1.9", "fd10:1:0:1::2")
	off.ReleasePodIPs(id(1))
	if _, ok := off.AttachmentOf(addr("fd10:1:0:1::2")); ok {
		t.Error("the address of the old family is not released")
	}
}

// TestUnexpectedAddresses: the configuration or the node ID changed while pods were running, or two pods have the same address. This is
// reported and does not prevent the start of the node.
func TestUnexpectedAddresses(t *testing.T) {
	f := newFixture(t, contivconf.File{})
	f.pods.list = []*podmanager.Attachment{
		attachment(1, "10.1.2.5"), attachment(2, "10.1.1.2"), attachment(3, "10.1.1.2"), attachment(4, "10.1.1.254"),
	}
	f.mustResync(1)
	for _, want := range []string{
		"address 10.1.2.5 of attachment c1/eth0 is not one for pods of this node (pod subnet 10.1.1.0/24)",
		"address 10.1.1.2 of attachment c3/eth0 belongs to attachment c2/eth0 already",
		"address 10.1.1.254",
	} {
		if !strings.Contains(f.log.String(), want) {
			t.Errorf("log %s\nwant %q", f.log, want)
		}
	}
	f.want(f.PodIPs(id(1)), "10.1.2.5")
	f.want(f.PodIPs(id(2)), "10.1.1.2")
	f.want(f.allocate(5), "10.1.1.3")
	if got := f.report().Subnets[0].Used; got != 2 {
		t.Errorf("%d used, want 2", got)
	}
}

func TestEvents(t *testing.T) {
	f := newFixture(t, contivconf.File{})
	f.mustResync(1)
	add := podmanager.NewAddPod(attachment(1))
	del := podmanager.NewDeletePod(attachment(1))
	for _, ev := range []api.Event{add, del, api.NewDBResync()} {
		if !f.HandlesEvent(ev) {
			t.Errorf("does not handle %s", ev)
		}
	}
	if f.HandlesEvent(&api.KubeStateChange{Resource: "pod"}) {
		t.Error("handles Kubernetes state changes")
	}

	// a failed ADD releases the addresses
	f.update(add)
	f.want(f.allocate(1), "10.1.1.2")
	if err := f.Revert(add); err != nil {
		t.Fatal(err)
	}
	if got := f.PodIPs(id(1)); len(got) != 0 {
		t.Errorf("after Revert: %v", got)
	}
	// a failed repeat of an ADD does not
	f.update(add)
	f.want(f.allocate(1), "10.1.1.3")
	f.update(add)
	if err := f.Revert(add); err != nil {
		t.Fatal(err)
	}
	f.want(f.PodIPs(id(1)), "10.1.1.3")
	if err := f.Revert(del); err != nil {
		t.Fatal(err)
	}

	if change := f.update(del); change != "release 10.1.1.3" {
		t.Errorf("change %q", change)
	}
	if change := f.update(del); change != "" {
		t.Errorf("change %q of a repeated DEL", change)
	}
	if len(f.IPAM.pods) != 0 {
		t.Errorf("pods left behind: %v", f.IPAM.pods)
	}
}

func (f *fixture) update(ev api.Event) string {
	f.t.Helper()
	change, err := f.Update(ev, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return change
}

func TestREST(t *testing.T) {
	f := newFixture(t, dualStack())
	f.mustResync(1)
	f.update(podmanager.NewAddPod(attachment(2)))
	f.allocate(2)
	f.update(podmanager.NewAddPod(attachment(1)))
	f.allocate(1)
	w := httptest.NewRecorder()
	f.rest["/contiv/v1/ipam/allocations"](w, httptest.NewRequest(http.MethodGet, "/contiv/v1/ipam/allocations", nil))
	var got allocationsReport
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := allocationsReport{
		Pods: []podReport{
			{podIDReport{"pod1", "default"}, "10.1.1.3", []string{"10.1.1.3", "fd10:1:0:1::3"}, "c1", "eth0"},
			{podIDReport{"pod2", "default"}, "10.1.1.2", []string{"10.1.1.2", "fd10:1:0:1::2"}, "c2", "eth0"},
		},
		Subnets: []subnetReport{
			{prefix("10.1.1.0/24"), 2, 250}, {prefix("fd10:1:0:1::/64"), 2, maxPoolSize - 2},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestFailedRepetitionInAnotherFamily: a repeated ADD allocates an address in a family that was configured after the first one. If it fails, the
// attachment has its first address again, and no other.
func TestFailedRepetitionInAnotherFamily(t *testing.T) {
	f := newFixture(t, dualStack())
	f.pods.list = []*podmanager.Attachment{attachment(1, "10.1.1.7")}
	f.mustResync(1)
	before := f.DescribeInternalData()
	for range 2 {
		ev := podmanager.NewAddPod(f.pods.list[0])
		f.update(ev)
		if ips := f.allocate(1); len(ips) != 2 || ips[0] != addr("10.1.1.7") {
			t.Fatalf("addresses %v, want one of each family, and the first one again", ips)
		}
		if err := f.Revert(ev); err != nil {
			t.Fatal(err)
		}
		if got := f.DescribeInternalData(); got != before {
			t.Errorf("after Revert %q, before %q", got, before)
		}
		for _, u := range f.Usage() {
			if want := map[bool]int{true: 1}[u.Subnet.Addr().Is4()]; u.Used != want {
				t.Errorf("%d addresses of %s are in use, want %d", u.Used, u.Subnet, want)
			}
		}
	}
	f.want(f.PodIPs(id(1)), "10.1.1.7")
	if change := f.update(podmanager.NewDeletePod(f.pods.list[0])); change != "release 10.1.1.7" {
		t.Errorf("change %q", change)
	}
}

// TestUpdatesEqualResync checks that, after random ADDs, failed ADDs and DELs, a resync from podmanager's data gives the same state.
func TestUpdatesEqualResync(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		f := newFixture(t, tiny())
		f.mustResync(1)
		live := map[int]*podmanager.Attachment{}
		for step := range 300 {
			n := rnd.IntN(7)
			switch a, exists := live[n], live[n] != nil; {
			case exists && rnd.IntN(2) == 0:
				f.update(podmanager.NewDeletePod(a))
				delete(live, n)
			default:
				ev := podmanager.NewAddPod(attachment(n))
				f.update(ev)
				ips, err := f.AllocatePodIPs(id(n))
				if err != nil || rnd.IntN(3) == 0 {
					if err := f.Revert(ev); err != nil {
						t.Fatal(err)
					}
					break
				}
				live[n] = attachment(n, ips[0].String())
			}
			f.pods.list = nil
			for i := range 7 {
				if a := live[i]; a != nil {
					f.pods.list = append(f.pods.list, a)
				}
			}
			before := f.DescribeInternalData()
			f.mustResync(2)
			if after := f.DescribeInternalData(); before != after {
				t.Fatalf("seed %d step %d: updates gave\n%s\nresync gives\n%s", seed, step, before, after)
			}
		}
	}
}
