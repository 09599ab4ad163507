package kubepods

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
)

type mux map[string]http.HandlerFunc

func (m mux) RegisterHTTPHandler(path string, h http.HandlerFunc, _ ...string) { m[path] = h }

func TestPodsOfThisNode(t *testing.T) {
	m := mux{}
	p := New("n1", true, m)
	get := func() (out List) {
		t.Helper()
		w := httptest.NewRecorder()
		m[Path](w, httptest.NewRequest(http.MethodGet, Path, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if get().Known {
		t.Error("pods are known before anything has come from Kubernetes")
	}
	here := &model.Pod{Name: "a", Namespace: "x", NodeName: "n1", Ips: []string{"10.1.1.2"}}
	there := &model.Pod{Name: "b", Namespace: "x", NodeName: "n2"}
	if err := p.Resync(nil, api.KubeStateData{"pod": {"a": here, "b": there}}, 1, nil); err != nil {
		t.Fatal(err)
	}
	if out := get(); !out.Known || len(out.Pods) != 1 || out.Pods[0].Name != "a" || out.Pods[0].IPs[0] != "10.1.1.2" {
		t.Errorf("after the snapshot: %+v", out)
	}
	if p.HandlesEvent(&api.KubeStateChange{Resource: "pod", NewValue: there}) {
		t.Error("a pod of another node is an event for this one")
	}
	gone := &api.KubeStateChange{Resource: "pod", Key: "a", PrevValue: here}
	if !p.HandlesEvent(gone) {
		t.Error("the end of a pod is no event")
	}
	if _, err := p.Update(gone, nil); err != nil || len(get().Pods) != 0 {
		t.Errorf("the pod is gone: %+v %v", get(), err)
	}
}
