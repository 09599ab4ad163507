package hnsmem

import (
	"encoding/json"
	"fmt"
	"slices"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

func (h V2) ListNamespaces() ([]hcn.Namespace, error) {
	unlock, err := h.begin("ListNamespaces", "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []hcn.Namespace{}
	for _, id := range sortedKeys(h.namespaces) {
		list = append(list, clone(*h.namespaces[id]))
	}
	return list, nil
}

func (h V2) CreateNamespace(ns hcn.Namespace) (hcn.Namespace, error) {
	unlock, err := h.begin("CreateNamespace", ns.ID)
	if err != nil {
		return hcn.Namespace{}, err
	}
	defer unlock()
	switch ns.Type {
	case "", hcn.NamespaceHost, hcn.NamespaceHostDefault, hcn.NamespaceGuest:
	default:
		return hcn.Namespace{}, invalid("namespace type %q", ns.Type)
	}
	if h.namespaces[ns.ID] != nil {
		return hcn.Namespace{}, fmt.Errorf("namespace %s: %w", ns.ID, hcn.ErrExists)
	}
	if ns.ID == "" {
		ns.ID = h.newID()
	}
	ns.NamespaceID = uint32(len(h.namespaces) + 2) // 1 is the ID of the host's namespace
	ns = clone(ns)
	h.namespaces[ns.ID] = &ns
	return clone(ns), nil
}

func (h V2) DeleteNamespace(id string) error {
	unlock, err := h.begin("DeleteNamespace", id)
	if err != nil {
		return err
	}
	defer unlock()
	if err := checkIDs(id); err != nil {
		return err
	}
	if h.namespaces[id] == nil {
		return fmt.Errorf("namespace %s: %w", id, hcn.ErrNotFound)
	}
	for _, e := range h.endpoints {
		if e.HostComputeNamespace == id {
			h.detach(e)
		}
	}
	delete(h.namespaces, id)
	return nil
}

func (h V2) AttachEndpoint(namespaceID, endpointID string) error {
	unlock, err := h.begin("AttachEndpoint", endpointID)
	if err != nil {
		return err
	}
	defer unlock()
	if err := checkIDs(namespaceID, endpointID); err != nil {
		return err
	}
	ns, e := h.namespaces[namespaceID], h.endpoints[endpointID]
	switch {
	case ns == nil:
		return fmt.Errorf("namespace %s: %w", namespaceID, hcn.ErrNotFound)
	case e == nil:
		return fmt.Errorf("endpoint %s: %w", endpointID, hcn.ErrNotFound)
	case e.HostComputeNamespace == namespaceID:
		return fmt.Errorf("endpoint %s in namespace %s: %w", endpointID, namespaceID, hcn.ErrExists)
	case e.HostComputeNamespace != "":
		return invalid("endpoint %s is in namespace %s", endpointID, e.HostComputeNamespace)
	case e.Flags&hcn.FlagRemote != 0:
		return invalid("endpoint %s is remote", endpointID)
	}
	ns.Resources = append(ns.Resources, hcn.NamespaceResource{Type: "Endpoint", Data: idJSON(endpointID)})
	e.HostComputeNamespace = namespaceID // its state changes when a container runs
	return nil
}

func idJSON(id string) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"ID":%q}`, id)) }

func (h V2) DetachEndpoint(namespaceID, endpointID string) error {
	unlock, err := h.begin("DetachEndpoint", endpointID)
	if err != nil {
		return err
	}
	defer unlock()
	if err := checkIDs(namespaceID, endpointID); err != nil {
		return err
	}
	e := h.endpoints[endpointID]
	if e == nil || e.HostComputeNamespace != namespaceID || h.namespaces[namespaceID] == nil {
		return fmt.Errorf("endpoint %s in namespace %s: %w", endpointID, namespaceID, hcn.ErrNotFound)
	}
	h.detach(e)
	return nil
}

func (h *Host) detach(e *endpoint) {
	if ns := h.namespaces[e.HostComputeNamespace]; ns != nil {
		ns.Resources = slices.DeleteFunc(ns.Resources, func(r hcn.NamespaceResource) bool {
			return string(r.Data) == string(idJSON(e.ID))
		})
	}
	e.HostComputeNamespace, e.state = "", hns.Detached
}
