package main

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/kube"
)

// TestRelayOptions: in relay mode etcd is the only source; options of the API server are rejected.
func TestRelayOptions(t *testing.T) {
	for _, o := range []kubernetesOptions{
		{mode: kubernetesRelay, api: kube.Config{Kubeconfig: "/etc/kubeconfig"}},
		{mode: kubernetesRelay, api: kube.Config{Server: "https://192.0.2.1:6443"}},
	} {
		if err := o.complete(); err == nil || !strings.Contains(err.Error(), "--kubernetes=relay") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
	o := kubernetesOptions{mode: kubernetesRelay}
	if err := o.complete(); err != nil || o.mode != kubernetesRelay {
		t.Errorf("mode %q, error %v", o.mode, err)
	}
	a := &agent{opts: &options{kubernetes: o}} // with its own etcd, to which no contiv-ksr writes
	if _, err := a.newKube(nil); err == nil || !strings.Contains(err.Error(), "--etcd-endpoints") {
		t.Errorf("error %v", err)
	}
}
