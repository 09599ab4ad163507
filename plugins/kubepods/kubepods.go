package kubepods

import (
	"maps"
	"net/http"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/controller/api"
)

// Path is the path of this node's pods as reported by Kubernetes.
const Path = "/contiv/v1/kubernetes/pods"

// List is the response to GET Path.
type List struct {
	// Known is false while no data have arrived from Kubernetes.
	Known bool  `json:"known"`
	Pods  []Pod `json:"pods"`
}

// Pod is a pod of this node as reported by Kubernetes.
type Pod struct {
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name"`
	UID         string   `json:"uid,omitempty"`
	IPs         []string `json:"ips"`
	HostNetwork bool     `json:"hostNetwork,omitempty"`
	Terminating bool     `json:"terminating,omitempty"`
}

// Plugin stores this node's pods as reported by Kubernetes.
type Plugin struct {
	node    string
	watched bool // whether Kubernetes is watched

	mu     sync.Mutex
	synced bool           // guarded by mu; a snapshot has arrived
	pods   map[string]Pod // guarded by mu; by key
}

// New returns a Plugin for the pods of the node, and registers the handler of Path; watched reports whether Kubernetes is used at all.
func New(node string, watched bool, http rest.HTTPHandlers) *Plugin {
	p := &Plugin{node: node, watched: watched, pods: map[string]Pod{}}
	http.RegisterHTTPHandler(Path, p.servePods)
	return p
}

// String implements api.EventHandler.
func (p *Plugin) String() string { return "kubepods" }

// HandlesEvent implements api.EventHandler. It ignores pods of other nodes.
func (p *Plugin) HandlesEvent(ev api.Event) bool {
	change, ok := ev.(*api.KubeStateChange)
	if !ok {
		return ev.Method().IsResync()
	}
	return change.Resource == model.PodKeyword && (p.isOurs(change.NewValue) || p.isOurs(change.PrevValue))
}

func (p *Plugin) isOurs(value proto.Message) bool {
	pod, ok := value.(*model.Pod)
	return ok && pod.GetNodeName() == p.node
}

// Resync implements api.EventHandler.
func (p *Plugin) Resync(_ api.Event, kubeStateData api.KubeStateData, _ int, _ api.ResyncOperations) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.synced = true
	clear(p.pods)
	for key, value := range kubeStateData[model.PodKeyword] {
		if pod, ok := value.(*model.Pod); ok {
			p.putLocked(key, pod)
		}
	}
	return nil
}

// Update implements api.EventHandler.
func (p *Plugin) Update(event api.Event, _ api.UpdateOperations) (string, error) {
	change, ok := event.(*api.KubeStateChange)
	if !ok {
		return "", nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods, change.Key)
	if pod, ok := change.NewValue.(*model.Pod); ok {
		p.putLocked(change.Key, pod)
	}
	return "", nil
}

// Revert implements api.EventHandler. It does nothing: the state of Kubernetes does not depend on the transaction.
func (p *Plugin) Revert(api.Event) error { return nil }

func (p *Plugin) putLocked(key string, pod *model.Pod) {
	if !p.isOurs(pod) {
		return
	}
	p.pods[key] = Pod{
		Namespace: pod.GetNamespace(), Name: pod.GetName(), UID: pod.GetUid(), IPs: append([]string{}, pod.GetIps()...),
		HostNetwork: pod.GetHostNetwork(), Terminating: pod.GetTerminating(),
	}
}

func (p *Plugin) servePods(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	out := List{Known: p.synced && p.watched, Pods: []Pod{}}
	for _, key := range slices.Sorted(maps.Keys(p.pods)) {
		out.Pods = append(out.Pods, p.pods[key])
	}
	p.mu.Unlock()
	rest.WriteJSON(w, http.StatusOK, out)
}
