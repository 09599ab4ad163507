package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"contiv.dev/vswitch/internal/etcdpki"
)

// secretsAPI is an API server with Secrets.
type secretsAPI struct {
	mu  sync.Mutex
	has map[string]map[string][]byte
}

func (a *secretsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	reply := func(name string) {
		s := corev1.Secret{Data: a.has[name]}
		s.APIVersion, s.Kind, s.Name = "v1", "Secret", name
		_ = json.NewEncoder(w).Encode(&s)
	}
	status := func(code int, reason string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason})
	}
	if name := path.Base(r.URL.Path); r.Method == http.MethodGet {
		if a.has[name] == nil {
			status(http.StatusNotFound, "NotFound")
			return
		}
		reply(name)
		return
	}
	var envelope runtime.Unknown
	var s corev1.Secret
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = envelope.Unmarshal(body[len("k8s\x00"):])
	}
	if err == nil {
		err = s.Unmarshal(envelope.Raw)
	}
	switch {
	case err != nil:
		status(http.StatusBadRequest, "BadRequest")
	case a.has[s.Name] != nil:
		status(http.StatusConflict, "AlreadyExists")
	default:
		a.has[s.Name] = s.Data
		reply(s.Name)
	}
}

// TestSecretsFitEachOther: Secrets are made once, and an agents' certificate that the CA has not signed is an error.
func TestSecretsFitEachOther(t *testing.T) {
	api := &secretsAPI{has: map[string]map[string][]byte{}}
	k, err := newStarter(t, api).client()
	if err != nil {
		t.Fatal(err)
	}
	run := func() error { return makeSecrets(t.Context(), k, "kube-system", "ca", "client") }
	for range 2 {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	foreign, err := etcdpki.NewCA("other")
	if err != nil {
		t.Fatal(err)
	}
	agent, err := foreign.Issue(etcdpki.Leaf{Name: "contiv-agent", Client: true})
	if err != nil {
		t.Fatal(err)
	}
	good := api.has["client"]
	for name, change := range map[string]map[string][]byte{
		"certificate of another CA": {tlsCert: agent.Cert, tlsKey: agent.Key}, "key of another certificate": {tlsKey: agent.Key},
		"trusts another CA": {caCert: foreign.Cert}, "no CA": {caCert: nil},
	} {
		api.has["client"] = maps.Clone(good)
		maps.Copy(api.has["client"], change)
		if err := run(); err == nil || !strings.Contains(err.Error(), "ca and client in kube-system") {
			t.Errorf("%s: %v", name, err)
		}
	}
	api.has["client"] = good
	delete(api.has, "ca") // the CA alone is replaced
	if err := run(); err == nil || !strings.Contains(err.Error(), "has not signed") {
		t.Errorf("another CA: %v", err)
	}
	delete(api.has, "client")
	if err := run(); err != nil {
		t.Errorf("both are made again: %v", err)
	}
}
