package hostsvc

import (
	"errors"
	"fmt"
	"log/slog"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Txn returns the transaction of the event that is being handled. *service.Txn implements it.
type Txn interface {
	Update(note string) api.UpdateOperations
	Resync() api.ResyncOperations
}

// Deps are the dependencies of the renderer.
type Deps struct {
	Txn Txn
	Log *slog.Logger // nil: no log
}

// Renderer is a renderer.ServiceRendererAPI. Its only state is this node's addresses.
type Renderer struct {
	Deps
	nodeIPs *renderer.IPAddresses
}

var (
	_ renderer.ServiceRendererAPI   = (*Renderer)(nil)
	_ renderer.LocalNodeIPsRenderer = (*Renderer)(nil)
)

// New returns a renderer.
func New(deps Deps) *Renderer {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	return &Renderer{Deps: deps, nodeIPs: renderer.NewIPAddresses()}
}

// AddService implements renderer.ServiceRendererAPI.
func (r *Renderer) AddService(service *renderer.ContivService) error {
	return r.put(r.Txn.Update("add service "+service.ID.String()), service)
}

// UpdateService implements renderer.ServiceRendererAPI.
func (r *Renderer) UpdateService(_, service *renderer.ContivService, _ []*renderer.ContivService) error {
	return r.put(r.Txn.Update("update service "+service.ID.String()), service)
}

// DeleteService implements renderer.ServiceRendererAPI.
func (r *Renderer) DeleteService(service *renderer.ContivService, _ []*renderer.ContivService) error {
	key, err := nb.Key(message(service))
	if err != nil {
		return renderer.Refuse(service.ID, err)
	}
	r.Txn.Update("delete service " + service.ID.String()).Delete(key)
	return nil
}

// UpdateNodePortServices does nothing: node ports are at this node's addresses only.
func (r *Renderer) UpdateNodePortServices(*renderer.IPAddresses, []*renderer.ContivService) error {
	return nil
}

// UpdateLocalNodeIPs implements renderer.LocalNodeIPsRenderer.
func (r *Renderer) UpdateLocalNodeIPs(nodeIPs *renderer.IPAddresses, npServices []*renderer.ContivService) error {
	r.nodeIPs = nodeIPs
	var errs []error
	for _, service := range npServices {
		errs = append(errs, r.put(r.Txn.Update(""), service))
	}
	if len(npServices) > 0 {
		r.Txn.Update(fmt.Sprintf("node ports of %d services at %s", len(npServices), nodeIPs))
	}
	return errors.Join(errs...)
}

// UpdateLocalFrontendIfs does nothing: the kernel processes packets of all interfaces.
func (r *Renderer) UpdateLocalFrontendIfs(_, _ renderer.Interfaces) error { return nil }

// UpdateLocalBackendIfs does nothing.
func (r *Renderer) UpdateLocalBackendIfs(_, _ renderer.Interfaces) error { return nil }

// Resync implements renderer.ServiceRendererAPI.
func (r *Renderer) Resync(ev *renderer.ResyncEventData) error {
	r.nodeIPs = ev.LocalNodeIPs
	txn := r.Txn.Resync()
	var errs []error
	for _, service := range ev.Services {
		errs = append(errs, r.put(txn, service))
	}
	return errors.Join(errs...)
}

func (r *Renderer) put(txn interface {
	Put(key string, m pb.Message)
}, service *renderer.ContivService) error {
	m := render(service, r.nodeIPs.Addrs())
	key, err := nb.Key(m)
	if err != nil {
		return renderer.Refuse(service.ID, err)
	}
	txn.Put(key, m)
	return nil
}

// message returns a message with the name of a service only, for its key.
func message(service *renderer.ContivService) *proto.BalancedServiceUpdate {
	return &proto.BalancedServiceUpdate{Namespace: service.ID.Namespace, Name: service.ID.Name}
}
