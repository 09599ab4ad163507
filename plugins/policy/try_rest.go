package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"contiv.dev/vswitch/internal/rest"
)

const (
	tryPath = "/contiv/v1/policies/try"
	// maxTriedPolicy is larger than any object that the API server stores.
	maxTriedPolicy = 2 << 20
)

// serveTry returns the changes that a policy would cause. The policy is text, YAML or JSON.
func (p *Plugin) serveTry(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Policy string `json:"policy"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTriedPolicy)).Decode(&request); err != nil {
		rest.WriteError(w, http.StatusBadRequest, fmt.Errorf(`body: %w; send {"policy": "the YAML text of a policy"}`, err))
		return
	}
	if p.ParsePolicy == nil {
		rest.WriteError(w, http.StatusServiceUnavailable, errors.New("this agent does not watch Kubernetes and has no policies"))
		return
	}
	np, cnp, err := p.ParsePolicy([]byte(request.Policy))
	if err != nil {
		rest.WriteError(w, http.StatusBadRequest, err)
		return
	}
	if !p.trying.TryLock() {
		rest.WriteError(w, http.StatusTooManyRequests, errors.New("another policy is being tried; retry later"))
		return
	}
	defer p.trying.Unlock()
	rest.WriteJSON(w, http.StatusOK, p.try(r.Context(), np, cnp))
}
