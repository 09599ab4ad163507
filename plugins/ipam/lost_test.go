package ipam

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
)

// lostPod starts an agent without the record of a pod that the API server has with an address, among other pods that are not lost.
func lostPod(t *testing.T) (f *fixture, key string, pod *model.Pod) {
	t.Helper()
	f = newFixture(t, tiny())
	f.Node = "n1"
	f.mustResync(1)
	addrs, err := f.AllocatePodIPs(id(1))
	if err != nil {
		t.Fatal(err)
	}
	pod = &model.Pod{Namespace: "default", Name: "lost", NodeName: "n1", Ips: []string{addrs[0].String()}}
	key = "default/lost"
	g := newFixture(t, tiny())
	g.Node = "n1"
	other, host, young := clonePod(pod, "other"), clonePod(pod, "host"), clonePod(pod, "young")
	other.NodeName, host.HostNetwork, young.Ips = "n2", true, nil
	state := api.KubeStateData{model.PodKeyword: {key: pod, "default/other": other, "default/host": host, "default/young": young}}
	if err := g.Resync(api.NewDBResync(), state, 1, nil); err != nil {
		t.Fatal(err)
	}
	return g, key, pod
}

func clonePod(p *model.Pod, name string) *model.Pod {
	return &model.Pod{Namespace: p.Namespace, Name: name, NodeName: p.NodeName, Ips: p.Ips}
}

// allocateAll allocates all free addresses.
func (f *fixture) allocateAll() (all []string) {
	f.t.Helper()
	for n := 10; ; n++ {
		addrs, err := f.AllocatePodIPs(id(n))
		if err != nil {
			return all
		}
		all = append(all, addrs[0].String())
	}
}

// TestLostPod checks that no other pod gets the address of a pod whose record is lost, and that the pod is reported.
func TestLostPod(t *testing.T) {
	f, _, pod := lostPod(t)
	all := strings.Join(f.allocateAll(), " ")
	if all == "" || strings.Contains(all+" ", pod.Ips[0]+" ") {
		t.Errorf("allocated %q, and %s belongs to the lost pod", all, pod.Ips[0])
	}
	if log := f.log.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "default/lost") || !strings.Contains(log, pod.Ips[0]) {
		t.Errorf("log: %s", log)
	}
}

// TestLostPodReturns checks that a lost pod that is added again gets its address, also after an ADD that was reverted.
func TestLostPodReturns(t *testing.T) {
	f, key, pod := lostPod(t)
	add := func(n int) api.Event {
		return podmanager.NewAddPod(&podmanager.Attachment{ID: id(n), Pod: podmanager.PodID{Namespace: "default", Name: "lost"}})
	}
	for n := range 3 { // the runtime repeats an ADD that fails with another container
		first := add(n)
		f.update(first)
		f.want(f.allocate(n), pod.Ips...)
		if err := f.Revert(first); err != nil {
			t.Fatal(err)
		}
		if got := f.PodIPs(id(n)); len(got) != 0 || len(f.lost) != 1 {
			t.Errorf("after Revert the attachment has %v, and %d pods are lost", got, len(f.lost))
		}
	}
	f.update(podmanager.NewAddPod(attachment(9)))
	if other := f.allocate(9); other[0].String() == pod.Ips[0] {
		t.Errorf("another pod gets %s, which belongs to the lost pod", other[0])
	}
	f.update(add(5))
	f.want(f.allocate(5), pod.Ips...)
	if f.HandlesEvent(&api.KubeStateChange{Resource: model.PodKeyword, Key: key, PrevValue: pod}) {
		t.Error("changes of pods are handled although none is lost")
	}
	f.update(podmanager.NewDeletePod(&podmanager.Attachment{ID: id(5), Pod: podmanager.PodID{Namespace: "default", Name: "lost"}}))
	if all := strings.Join(f.allocateAll(), " ") + " "; !strings.Contains(all, pod.Ips[0]+" ") {
		t.Errorf("%s is not free after DEL: %s", pod.Ips[0], all)
	}
}

// TestLostPodReturnsWithoutItsAddress checks that a pod whose ADD never allocates loses nothing when the ADD is reverted.
func TestLostPodReturnsWithoutItsAddress(t *testing.T) {
	f, _, pod := lostPod(t)
	ev := podmanager.NewAddPod(&podmanager.Attachment{ID: id(1), Pod: podmanager.PodID{Namespace: "default", Name: "lost"}})
	f.update(ev)
	if err := f.Revert(ev); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(f.allocateAll(), " ") + " "; strings.Contains(all, pod.Ips[0]+" ") {
		t.Errorf("another pod gets %s, which belongs to the lost pod", pod.Ips[0])
	}
}

// TestLostPodGone checks that the address is free again when the pod is deleted or has another address.
func TestLostPodGone(t *testing.T) {
	for name, end := range map[string]func(f *fixture, key string, pod *model.Pod) api.Event{
		"deleted": func(_ *fixture, key string, pod *model.Pod) api.Event {
			return &api.KubeStateChange{Resource: model.PodKeyword, Key: key, PrevValue: pod}
		},
		"moved": func(_ *fixture, key string, pod *model.Pod) api.Event {
			moved := clonePod(pod, pod.Name)
			moved.Ips = []string{"10.1.99.1"}
			return &api.KubeStateChange{Resource: model.PodKeyword, Key: key, PrevValue: pod, NewValue: moved}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, key, pod := lostPod(t)
			labelled := clonePod(pod, pod.Name)
			labelled.Labels = map[string]string{"a": "b"}
			same := &api.KubeStateChange{Resource: model.PodKeyword, Key: key, PrevValue: pod, NewValue: labelled}
			for _, ev := range []api.Event{same, end(f, key, pod)} {
				if !f.HandlesEvent(ev) {
					t.Fatalf("%v is not handled", ev)
				}
				before := len(f.lost)
				if _, err := f.Update(ev, nil); err != nil {
					t.Fatal(err)
				}
				if ev == api.Event(same) && len(f.lost) != before {
					t.Fatal("a new label has freed the address")
				}
			}
			if all := strings.Join(f.allocateAll(), " ") + " "; !strings.Contains(all, pod.Ips[0]+" ") {
				t.Errorf("%s is not free: %s", pod.Ips[0], all)
			}
			if f.HandlesEvent(same) {
				t.Error("changes of pods are handled although none is lost")
			}
		})
	}
}
