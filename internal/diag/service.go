package diag

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"

	"contiv.dev/vswitch/internal/rest"
)

// maxBody bounds the size of requests.
const maxBody = 16 << 10

// Pod is an attached pod of this node.
type Pod struct {
	Namespace, Name string
	Netns           string
	Addresses       []netip.Addr
	Device          string // the pod's device on the node, without VPP; empty with VPP
}

// Deps are the dependencies of a Service.
type Deps struct {
	Log  *slog.Logger
	HTTP rest.HTTPHandlers
	Info AgentInfo // the fields that do not change
	// Ready returns the reason why the agent is not ready.
	Ready func() error
	// VPP returns the connected VPP; nil: none is connected. The function is nil without VPP.
	VPP func(context.Context) *VPPInfo
	// Configuration returns how the agent was started.
	Configuration func() (Configuration, error)
	// Warnings returns the faults of the data path while the agent is ready. The function is nil where
	// they are not checked.
	Warnings func() []Warning
	// CLI runs a command of VPP's CLI; nil without VPP.
	CLI CLI
	// PodTable is the number of VPP's routing table of pods.
	PodTable uint32
	// Interfaces returns the interfaces that the agent has in VPP. The function is nil without VPP.
	Interfaces func() []Interface
	// Pods returns the pods of this node.
	Pods func() []Pod
	// Dir is a directory for a file that exists while packets are recorded.
	Dir string
	// Check compares the dataplane with the programmed values.
	Check func(ctx context.Context) (CheckReply, error)
}

// Service serves the requests of contiv-netctl.
type Service struct {
	Deps

	mu       sync.Mutex
	stop     context.CancelFunc // guarded by mu: ends the recording; nil when there is none
	recorder string             // guarded by mu: its ID
	number   int                // guarded by mu: number of recordings so far
}

// New returns a Service and registers its handlers.
func New(deps Deps) *Service {
	s := &Service{Deps: deps}
	deps.HTTP.RegisterHTTPHandler(AgentPath, s.serveAgent)
	deps.HTTP.RegisterHTTPHandler(CLIPath, s.serveCLI, http.MethodPost)
	deps.HTTP.RegisterHTTPHandler(ProbePath, s.serveProbe, http.MethodPost)
	deps.HTTP.RegisterHTTPHandler(TracePath, s.serveTrace, http.MethodPost)
	deps.HTTP.RegisterHTTPHandler(TraceStopPath, s.serveTraceStop, http.MethodPost)
	deps.HTTP.RegisterHTTPHandler(CheckPath, s.serveCheck, http.MethodPost)
	deps.HTTP.RegisterHTTPHandler(KernelPath, s.serveKernel)
	deps.HTTP.RegisterHTTPHandler(DropsPath, s.serveDrops)
	deps.HTTP.RegisterHTTPHandler(ConfigPath, s.serveConfig)
	deps.HTTP.RegisterHTTPHandler(RulesetPath, s.serveRuleset)
	return s
}

func (s *Service) serveAgent(w http.ResponseWriter, r *http.Request) {
	info := s.Info
	if err := s.Ready(); err != nil {
		info.Problems = []string{err.Error()}
	}
	if s.VPP != nil {
		info.VPP = s.VPP(r.Context())
	}
	if s.Warnings != nil {
		info.Warnings = s.Warnings()
	}
	rest.WriteJSON(w, http.StatusOK, info)
}

func (s *Service) serveCheck(w http.ResponseWriter, r *http.Request) {
	reply, err := s.Check(r.Context())
	if err != nil {
		rest.WriteError(w, http.StatusServiceUnavailable, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, reply)
}

// pod returns the current attachment of a pod of this node.
func (s *Service) pod(namespace, name string) (Pod, error) {
	for _, p := range s.Pods() {
		if p.Namespace == namespace && p.Name == name {
			return p, nil
		}
	}
	return Pod{}, fmt.Errorf("node %s has no pod %s/%s; contiv-netctl pods lists its pods", s.Info.Node, namespace,
		name)
}

// errBusy is the error of a second recording: recordings share VPP's one trace buffer.
var errBusy = errors.New("another trace is running on this node; retry when it has ended")
