package ipnet

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
)

// connected adds an attachment with addresses to those that a resync finds.
func (w *node) connected(name string, addrs ...string) *podmanager.Attachment {
	a := &podmanager.Attachment{
		ID: podmanager.AttachmentID{ContainerID: "c-" + name, IfName: "eth0"}, Netns: "/run/netns/" + name,
		Pod: podmanager.PodID{Namespace: "default", Name: name}, Seq: uint64(len(w.pods.list) + 1),
	}
	for _, addr := range addrs {
		a.Addresses = append(a.Addresses, netip.MustParsePrefix(addr))
	}
	w.pods.list = append(w.pods.list, a)
	return a
}

// update passes an event to ipam and ipnet until one of them fails.
func (w *node) update(ev api.Event) error {
	for _, h := range []api.EventHandler{w.ipam, w.n} {
		if _, err := h.Update(ev, w.want); err != nil {
			return err
		}
	}
	return nil
}

// TestFamilyWithoutGateway: a pod keeps an address of a family that the node's configuration no longer has. It has no gateway and no routes in that
// family, in the dataplane and in the result of a repeated ADD.
func TestFamilyWithoutGateway(t *testing.T) {
	for name, config := range map[string]string{"tap": "useTAPInterfaces: true\n", "veth": "useTAPInterfaces: false\n"} {
		t.Run(name, func(t *testing.T) {
			w := newNode(t, config)
			a := w.connected("a", "10.1.1.9/32", "fd10:1::9/128")
			w.resync()
			for _, text := range texts(w.want) {
				if strings.Contains(text, "invalid") {
					t.Errorf("value %s", text)
				}
			}
			linux := w.n.pods[a.ID].names.linux
			ifc, _ := w.want[nb.LinuxInterfaceKey(linux)].(*linux_interfaces.Interface)
			if got := ifc.GetIpAddresses(); !slices.Equal(got, []string{"10.1.1.9/32", "fd10:1::9/128"}) {
				t.Errorf("addresses %v, want both", got)
			}
			if w.want[nb.LinuxRouteKey("0.0.0.0/0", linux)] == nil || w.want[nb.LinuxRouteKey("::/0", linux)] != nil {
				t.Errorf("want a default route of IPv4 only:\n%s", strings.Join(texts(w.want), "\n"))
			}
			before := texts(w.want)
			ev := podmanager.NewAddPod(a)
			if err := w.update(ev); err != nil {
				t.Fatal(err)
			}
			if got := texts(w.want); !slices.Equal(got, before) {
				t.Errorf("a repeated ADD gives\n%s\nbefore\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
			}
			if len(ev.IPs) != 2 || ev.IPs[0].Gateway.String() != "10.1.1.1" || ev.IPs[1].Gateway.IsValid() {
				t.Errorf("addresses %v, want both, and a gateway of IPv4 only", ev.IPs)
			}
			if len(ev.Routes) != 1 || ev.Routes[0].Dst.String() != "0.0.0.0/0" || ev.Routes[0].GW.String() != "10.1.1.1" {
				t.Errorf("routes %v, want the default route of IPv4", ev.Routes)
			}
		})
	}
}

// TestFailedRepetition: a repeated ADD gives a pod an address of a family that it did not have. If a later step fails, everything is as after the
// first ADD.
func TestFailedRepetition(t *testing.T) {
	for name, fault := range map[string]error{"later handler": nil, "store": errors.New("disk full")} {
		t.Run(name, func(t *testing.T) {
			w := newNode(t, dualTAP)
			a := w.connected("a", "10.1.1.9/32")
			w.resync()
			link, keys, addrs := w.n.pods[a.ID], w.n.KeysOf(a.ID), w.ipam.PodIPs(a.ID)
			w.pods.fail = fault
			ev := podmanager.NewAddPod(a)
			if err := w.update(ev); !errors.Is(err, fault) {
				t.Fatal(err)
			}
			for _, h := range []api.EventHandler{w.n, w.ipam} {
				if err := h.Revert(ev); err != nil {
					t.Fatal(err)
				}
			}
			if w.n.pods[a.ID] != link || !slices.Equal(w.n.KeysOf(a.ID), keys) {
				t.Errorf("the pod is connected by %v, before by %v", w.n.KeysOf(a.ID), keys)
			}
			if got := w.ipam.PodIPs(a.ID); !slices.Equal(got, addrs) || len(addrs) != 1 {
				t.Errorf("addresses %v, before %v", got, addrs)
			}
			if _, pod, ok := w.n.GetPodByIf(link.names.vpp); !ok || pod != "a" {
				t.Errorf("%s is of pod %q, %t", link.names.vpp, pod, ok)
			}
		})
	}
}
