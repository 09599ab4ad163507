package connectivity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/nsdo"
	"contiv.dev/vswitch/internal/rest"
)

// The paths of the requests.
const (
	Path         = "/contiv/v1/testpods"
	DeletePath   = "/contiv/v1/testpods/delete"
	TransferPath = "/contiv/v1/testpods/transfer"
	ResolvePath  = "/contiv/v1/testpods/resolve"
)

const (
	// Port is the port on which a test pod answers, by TCP and UDP.
	Port = 8080
	// lifetime is the time after which a pod is removed that the test has not removed.
	lifetime = 5 * time.Minute
	// maxPods is the maximum number of test pods on a node.
	maxPods = 8
	// maxBody bounds the size of requests.
	maxBody = 4 << 10
	// cniTimeout bounds the CNI request that connects a pod.
	cniTimeout = 20 * time.Second
	// prefix is the prefix of the names of namespaces and containers.
	prefix = "contiv-test-"
)

// Deps are the dependencies of a Service.
type Deps struct {
	Log  *slog.Logger
	HTTP rest.HTTPHandlers
	Jobs *lifecycle.Group
	// CNI carries out a request as if the runtime had sent it.
	CNI func(ctx context.Context, req *cniapi.Request) (*cniapi.Result, error)
	// Dir is the folder of the network namespaces, such as /run/netns.
	Dir string
}

// Pod is the answer to POST Path.
type Pod struct {
	// Name is the name of the pod, without a Kubernetes namespace.
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
	MTU       int          `json:"mtu"`
	Port      int          `json:"port"`
}

// testPod is an existing pod.
type testPod struct {
	Pod
	netns   string
	ends    time.Time
	servers *servers
}

// Service makes and removes pods.
type Service struct {
	Deps
	mu   sync.Mutex
	pods map[string]*testPod // guarded by mu
}

// New returns a Service and registers its handlers. Run removes pods whose lifetime is over.
func New(deps Deps) *Service {
	s := &Service{Deps: deps, pods: map[string]*testPod{}}
	deps.HTTP.RegisterHTTPHandler(Path, s.serveAdd, http.MethodPost)
	deps.HTTP.RegisterHTTPHandler(DeletePath, s.serveDelete, http.MethodPost)
	deps.HTTP.RegisterHTTPHandler(TransferPath, s.serveTransfer, http.MethodPost)
	deps.HTTP.RegisterHTTPHandler(ResolvePath, s.serveResolve, http.MethodPost)
	return s
}

// Run removes pods whose lifetime is over, and all of them at the end.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.expire(context.WithoutCancel(ctx), time.Now().Add(lifetime))
			return ctx.Err()
		case now := <-tick.C:
			s.expire(ctx, now)
		}
	}
}

func (s *Service) expire(ctx context.Context, now time.Time) {
	s.mu.Lock()
	var over []string
	for name, p := range s.pods {
		if now.After(p.ends) {
			over = append(over, name)
		}
	}
	s.mu.Unlock()
	for _, name := range over {
		if err := s.remove(ctx, name); err != nil {
			s.Log.Warn("a pod of a connectivity test cannot be removed", "error", err, "pod", name)
		}
	}
}

// nameRequest is a request with the name of a pod.
type nameRequest struct {
	Name string `json:"name"`
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,40}$`)

// serveAdd: POST /contiv/v1/testpods {"name": "a"}
func (s *Service) serveAdd(w http.ResponseWriter, r *http.Request) {
	var req nameRequest
	if !rest.ReadJSON(w, r, maxBody, &req) {
		return
	}
	if !validName.MatchString(req.Name) {
		rest.WriteError(w, http.StatusBadRequest, fmt.Errorf("name %q: use up to 41 lower-case letters, digits and hyphens", req.Name))
		return
	}
	p, err := s.add(r.Context(), prefix+req.Name)
	if err != nil {
		rest.WriteError(w, http.StatusServiceUnavailable, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, p.Pod)
}

func (s *Service) request(command cniapi.Command, p *testPod) *cniapi.Request {
	return &cniapi.Request{
		Version: cniapi.Version, Command: command, ContainerID: p.Name, IfName: "eth0", Netns: p.netns,
		Network: cniapi.Network{Name: "contiv"},
	}
}

// add makes and connects a pod. If the pod cannot be connected, add removes everything that it
// made.
func (s *Service) add(ctx context.Context, name string) (*testPod, error) {
	p := &testPod{Pod: Pod{Name: name, Port: Port}, netns: filepath.Join(s.Dir, name), ends: time.Now().Add(lifetime)}
	s.mu.Lock()
	_, taken := s.pods[name]
	full := len(s.pods) >= maxPods
	if !taken && !full {
		s.pods[name] = p
	}
	s.mu.Unlock()
	if taken || full {
		return nil, fmt.Errorf("test pod %s: it exists, or this node has %d already; wait for the other test, or %s", name, maxPods, lifetime)
	}
	if err := s.connect(ctx, p); err != nil {
		return nil, errors.Join(fmt.Errorf("test pod %s: %w", name, err), s.remove(context.WithoutCancel(ctx), name))
	}
	return p, nil
}

func (s *Service) connect(ctx context.Context, p *testPod) error {
	ctx, cancel := context.WithTimeout(ctx, cniTimeout)
	defer cancel()
	if err := makeNamespace(p.netns); err != nil {
		return err
	}
	res, err := s.CNI(ctx, s.request(cniapi.Add, p))
	if err != nil {
		return err
	}
	for _, ip := range res.IPs {
		p.Addresses = append(p.Addresses, ip.Address.Addr())
	}
	for _, i := range res.Interfaces {
		if i.Sandbox != "" {
			p.MTU = i.MTU
		}
	}
	ns, err := nsdo.Open(p.netns)
	if err != nil {
		return err
	}
	defer ns.Close()
	p.servers, err = serve(s.Jobs, ns, p.Name)
	return err
}

// serveDelete: POST /contiv/v1/testpods/delete {"name": "contiv-test-a"}
func (s *Service) serveDelete(w http.ResponseWriter, r *http.Request) {
	var req nameRequest
	if !rest.ReadJSON(w, r, maxBody, &req) {
		return
	}
	if err := s.remove(r.Context(), req.Name); err != nil {
		rest.WriteError(w, http.StatusInternalServerError, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, map[string]string{"removed": req.Name})
}

// remove disconnects a pod. It returns nil for a pod that does not exist.
func (s *Service) remove(ctx context.Context, name string) error {
	s.mu.Lock()
	p := s.pods[name]
	delete(s.pods, name)
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	p.servers.close()
	ctx, cancel := context.WithTimeout(ctx, cniTimeout)
	defer cancel()
	_, err := s.CNI(ctx, s.request(cniapi.Del, p))
	return errors.Join(err, removeNamespace(p.netns))
}

// namespaceOf opens the network namespace of a pod.
func (s *Service) namespaceOf(name string) (*nsdo.Namespace, error) {
	s.mu.Lock()
	p := s.pods[name]
	s.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("there is no test pod %q on this node", name)
	}
	return nsdo.Open(p.netns)
}
