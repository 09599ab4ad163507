package links

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/nb/linux/l3"
	"contiv.dev/vswitch/dataplane/nb/linux/namespace"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/internal/nsdo"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestValidateNamesTheField(t *testing.T) {
	good := &linux_interfaces.Interface{
		Name: "a", Type: linux_interfaces.Interface_VETH, HostIfName: "eth0",
		Link: &linux_interfaces.Interface_Veth{Veth: &linux_interfaces.VethLink{PeerIfName: "b"}},
	}
	if err := validateLink("", good); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(v *linux_interfaces.Interface){
		"name":                   func(v *linux_interfaces.Interface) { v.Name = "" },
		`name "a/../b"`:          func(v *linux_interfaces.Interface) { v.Name = "a/../b" },
		"type":                   func(v *linux_interfaces.Interface) { v.Type = linux_interfaces.Interface_VRF_DEVICE },
		"veth.peer_if_name":      func(v *linux_interfaces.Interface) { v.GetVeth().PeerIfName = "a" },
		"host_if_name":           func(v *linux_interfaces.Interface) { v.HostIfName = "sixteencharacter" },
		"host_if_name is empty":  func(v *linux_interfaces.Interface) { v.HostIfName, v.Name = "", "sixteencharacter" },
		`host_if_name "a/b"`:     func(v *linux_interfaces.Interface) { v.HostIfName = "a/b" },
		`host_if_name "a%d"`:     func(v *linux_interfaces.Interface) { v.HostIfName = "a%d" }, // for the kernel: any free number
		"mtu":                    func(v *linux_interfaces.Interface) { v.Mtu = 12 },
		"phys_address":           func(v *linux_interfaces.Interface) { v.PhysAddress = "02:00" },
		"ip_addresses":           func(v *linux_interfaces.Interface) { v.IpAddresses = []string{"10.0.0.1"} },
		"vrf_master_interface":   func(v *linux_interfaces.Interface) { v.VrfMasterInterface = "x" },
		"tap.vpp_tap_if_name":    func(v *linux_interfaces.Interface) { v.Type = linux_interfaces.Interface_TAP_TO_VPP },
		"namespace.type":         func(v *linux_interfaces.Interface) { v.Namespace = ns(linux_namespace.NetNamespace_MICROSERVICE, "x") },
		`namespace.reference ""`: func(v *linux_interfaces.Interface) { v.Namespace = ns(linux_namespace.NetNamespace_NSID, "") },
		`namespace.reference "x`: func(v *linux_interfaces.Interface) { v.Namespace = ns(linux_namespace.NetNamespace_PID, "x") },
		`namespace.reference "y`: func(v *linux_interfaces.Interface) { v.Namespace = ns(linux_namespace.NetNamespace_FD, "y") },
	} {
		v := proto.Clone(good).(*linux_interfaces.Interface)
		spoil(v)
		if err := validateLink("", v); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func ns(typ linux_namespace.NetNamespace_ReferenceType, ref string) *linux_namespace.NetNamespace {
	return &linux_namespace.NetNamespace{Type: typ, Reference: ref}
}

func TestRouteOf(t *testing.T) {
	for want, v := range map[string]*linux_l3.Route{
		"":                   {OutgoingInterface: "a", DstNetwork: "0.0.0.0/0", GwAddr: "10.0.0.1"},
		"dst_network":        {OutgoingInterface: "a", DstNetwork: "10.0.0.1"},
		"gw_addr":            {OutgoingInterface: "a", DstNetwork: "10.0.0.0/8", GwAddr: "x"},
		"family":             {OutgoingInterface: "a", DstNetwork: "10.0.0.0/8", GwAddr: "fd00::1"},
		"outgoing_interface": {DstNetwork: "10.0.0.0/8"},
		"scope":              {OutgoingInterface: "a", DstNetwork: "10.0.0.0/8", GwAddr: "10.0.0.1", Scope: linux_l3.Route_LINK},
	} {
		_, err := routeOf(v)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	a := &linux_l3.Route{OutgoingInterface: "a", DstNetwork: "fd00::1/64", Scope: linux_l3.Route_LINK}
	b := &linux_l3.Route{OutgoingInterface: "a", DstNetwork: "fd00::/64", Metric: kernelIPv6Metric, Scope: linux_l3.Route_GLOBAL}
	if !routeEqual(a, b) {
		t.Error("IPv6 has no scope, and metric 0 is 1024")
	}
}

func TestSpareNameFits(t *testing.T) {
	for _, name := range []string{"", "a", strings.Repeat("x", 200)} {
		if n := spareName(name); len(n) > maxName {
			t.Errorf("%q has %d characters", n, len(n))
		}
	}
}

// TestHostsLinks tests which links have addresses of the host.
func TestHostsLinks(t *testing.T) {
	for name, want := range map[string]bool{
		"eth0": true, "bond0.100": true, "br0": true, "br-lan": true, "br-storage00000": true, "dummy0": true, "wg0": true,
		"kube-ipvs0": false, "nodelocaldns": false, "docker0": false, "docker_gwbridge": false, "br-0a1b2c3d4e5f": false, "cni0": false,
		"virbr0": false, "lxdbr0": false, "contiv-vxlan": false, "vpp1": false,
	} {
		if got := isHosts(linkInfo{name: name}); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

// TestPodOnly: an error in the namespace of a pod is of this pod only, unless the pod cannot cause it.
func TestPodOnly(t *testing.T) {
	for err, want := range map[error]bool{
		errNoLink: true, errForeign: true, nsdo.ErrGone: true, unix.EINVAL: true, unix.EEXIST: true, unix.EACCES: true, // EACCES: IPv6 is disabled
		unix.ENOMEM: false, unix.EMFILE: false, unix.EPERM: false, unix.EROFS: false,
	} {
		err = fmt.Errorf("set accept_ra of eth0: %w", err)
		if got := scheduler.IsPodOnly(podOnly("/run/netns/pod", err)); got != want {
			t.Errorf("in a pod: %v is of this pod only: %t, want %t", err, got, want)
		}
		if scheduler.IsPodOnly(podOnly("", err)) {
			t.Errorf("in the agent's namespace: %v is of one pod only", err)
		}
	}
}
