package documented

import (
	"net"
	"net/http"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// plugin has the methods of the agent's plugins.
type plugin interface {
	Init() error
	Close() error
	HandlesEvent(event controller.Event) bool
	Resync(event controller.Event, kubeStateData controller.KubeStateData, resyncCount int, txn controller.ResyncOperations) error
	Update(event controller.Event, txn controller.UpdateOperations) (change string, err error)
	Revert(event controller.Event) error
}

var (
	_ plugin = (*ipnet.IPNet)(nil)
	_ plugin = (*nodesync.NodeSync)(nil)
	_ plugin = &ipnet.DefaultPlugin
	_ plugin = &nodesync.DefaultPlugin
)

// ipnetAPI is the documented interface.
type ipnetAPI interface {
	GetPodIfNames(podNamespace string, podName string) (vppIfName, linuxIfName, loopIfName string, exists bool)
	GetPodByIf(ifname string) (podNamespace string, podName string, exists bool)
	GetNodeIP() (ip net.IP, network *net.IPNet)
	GetHostIPs() []net.IP
	GetHostInterconnectIfName() string
	GetVxlanBVIIfName() string
}

var _ interface {
	ipnetAPI
	StateToString() string
} = (*ipnet.IPNet)(nil)

// Dependencies that a program outside of the project creates itself.
type (
	noLoop   struct{}
	handlers struct{}
	database struct{}
	vpp      struct{}
)

func (noLoop) PushEvent(controller.Event) error                                         { return nil }
func (noLoop) PushFollowUp(cause, event controller.Event) error                         { return nil }
func (noLoop) GetAgentLabel() string                                                    { return "node" }
func (handlers) RegisterHTTPHandler(path string, h http.HandlerFunc, methods ...string) {}
func (database) OnConnect(callback func() error)                                        { _ = callback() }
func (database) NewBroker(prefix string) nodesync.ProtoBroker                           { return nil }
func (database) PutIfNotExists(key string, value []byte) (succeeded bool, err error) {
	return true, nil
}
func (database) Close() error                    { return nil }
func (vpp) NewAPIChannel() (conn.Channel, error) { return nil, nil }
func (vpp) NewAPIChannelBuffered(reqChanBufSize, replyChanBufSize int) (conn.Channel, error) {
	return nil, nil
}

// TestIPNet uses package ipnet.
func TestIPNet(t *testing.T) {
	for want, got := range map[string]string{
		"tap-vpp2": ipnet.HostInterconnectTAPinVPPLogicalName, "tap-vpp1": ipnet.HostInterconnectTAPinLinuxLogicalName,
		"vpp1": ipnet.HostInterconnectTAPinLinuxHostName, "vxlanBVI": ipnet.VxlanBVIInterfaceName,
	} {
		if got != want {
			t.Errorf("%q, documented as %q", got, want)
		}
	}
	var api ipnet.API
	var same ipnetAPI = api
	api = same
	var option ipnet.Option = ipnet.UseDeps(func(d *ipnet.Deps) {
		d.PluginName = "mine"
		d.EventLoop, d.ServiceLabel, d.HTTPHandlers, d.RemoteDB, d.GoVPP = noLoop{}, noLoop{}, handlers{}, database{}, vpp{}
		d.ContivConf, d.IPAM, d.NodeSync, d.PodManager = contivconf.API(nil), ipam.API(nil), nodesync.API(nil), podmanager.API(nil)
		d.DeviceManager, d.VPPIfPlugin, d.LinuxNsPlugin = nil, nil, nil
	})
	n := ipnet.NewPlugin(option)
	if n.String() != "mine" {
		t.Errorf("the plugin is called %q", n.String())
	}
	var dump ipnet.HostLinkIPsDumpClb = func() ([]net.IP, error) { return nil, nil }
	var event controller.Event = &ipnet.NodeIPv4Change{NodeIP: net.IPv4(192, 0, 2, 1)}
	if _, err := dump(); err != nil || event.Method() != controller.UpstreamResync || event.IsBlocking() || event.GetName() == "" || event.String() == "" ||
		!n.HandlesEvent(event) {
		t.Errorf("event %v, %v", event, err)
	}
}

// nodesyncAPI is the documented interface.
type nodesyncAPI interface {
	GetNodeID() uint32
	PublishNodeIPs(addresses contivconf.IPsWithNetworks, version contivconf.IPVersion) error
	GetAllNodes() nodesync.Nodes
}

// clusterWideDB is the documented interface.
type clusterWideDB interface {
	OnConnect(callback func() error)
	NewBroker(prefix string) nodesync.ProtoBroker
	PutIfNotExists(key string, value []byte) (succeeded bool, err error)
	Close() error
}

var _ nodesyncAPI = (*nodesync.NodeSync)(nil)

// TestNodeSync uses package nodesync.
func TestNodeSync(t *testing.T) {
	var api nodesync.API
	var same nodesyncAPI = api
	api = same
	var db nodesync.ClusterWideDB
	var sameDB clusterWideDB = db
	db = sameDB
	var option nodesync.Option = nodesync.UseDeps(func(d *nodesync.Deps) {
		d.PluginName = "mine"
		d.ServiceLabel, d.EventLoop, d.DB = noLoop{}, noLoop{}, database{}
	})
	if ns := nodesync.NewPlugin(option); ns.String() != "mine" {
		t.Errorf("the plugin is called %q", ns.String())
	}
	node := &nodesync.Node{ID: 1, Name: "node", VppIPAddresses: contivconf.IPsWithNetworks{}, MgmtIPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}}
	var nodes nodesync.Nodes = map[string]*nodesync.Node{node.Name: node}
	var event controller.UpdateEvent = &nodesync.NodeUpdate{NodeName: "node", PrevState: nil, NewState: nodes["node"]}
	event.Done(nil)
	if event.Direction() != controller.Forward || event.Method() != controller.Update || event.TransactionType() != controller.BestEffort ||
		event.IsBlocking() || event.GetName() == "" || event.String() == "" {
		t.Errorf("event %v", event)
	}
}

// serviceRenderer is the documented interface.
type serviceRenderer interface {
	AddService(service *renderer.ContivService) error
	UpdateService(oldService, newService *renderer.ContivService, otherExistingServices []*renderer.ContivService) error
	DeleteService(service *renderer.ContivService, otherExistingServices []*renderer.ContivService) error
	UpdateNodePortServices(nodeIPs *renderer.IPAddresses, npServices []*renderer.ContivService) error
	UpdateLocalFrontendIfs(oldIfNames, newIfNames renderer.Interfaces) error
	UpdateLocalBackendIfs(oldIfNames, newIfNames renderer.Interfaces) error
	Resync(resyncEv *renderer.ResyncEventData) error
}

// TestRenderer uses package renderer.
func TestRenderer(t *testing.T) {
	var api renderer.ServiceRendererAPI
	var same serviceRenderer = api
	api = same
	var protocol renderer.ProtocolType = renderer.TCP
	var policy renderer.TrafficPolicyType = renderer.NodeLocal
	if int(protocol) != 6 || int(renderer.UDP) != 17 || int(renderer.ClusterWide) != 0 || int(policy) != 1 {
		t.Error("constants")
	}
	s := renderer.NewContivService()
	s.ID = renderer.ServiceID{Namespace: "default", Name: "web"}
	s.TrafficPolicy, s.SessionAffinityTimeout = policy, uint32(60)
	s.ClusterIPs, s.ExternalIPs = renderer.NewIPAddresses(net.IPv4(10, 96, 0, 1)), renderer.NewIPAddresses()
	s.Ports["http"] = &renderer.ServicePort{Protocol: protocol, Port: 80, NodePort: 30080}
	s.Backends["http"] = []*renderer.ServiceBackend{{IP: net.IPv4(10, 1, 1, 2), Port: 8080, Local: true, HostNetwork: false}}
	var ports map[string]*renderer.ServicePort = s.Ports
	var backends map[string][]*renderer.ServiceBackend = s.Backends
	ips := s.ClusterIPs.Copy()
	var list []net.IP = ips.List()
	ifs := renderer.NewInterfaces("a", "b").Copy()
	ev := renderer.NewResyncEventData()
	ev.NodeIPs, ev.Services, ev.FrontendIfs, ev.BackendIfs = ips, []*renderer.ContivService{s}, ifs, renderer.Interfaces{"c": struct{}{}}
	if !s.HasNodePort() || !ips.Has(net.IPv4(10, 96, 0, 1)) || len(list) != 1 || !ifs.Has("a") || ifs.Has("c") {
		t.Errorf("%v, %v, %v", s, ips, ifs)
	}
	for _, text := range []interface{ String() string }{*s, *ips, ifs, protocol, policy, *ev, *backends["http"][0], *ports["http"]} {
		if text.String() == "" {
			t.Errorf("%T has no text", text)
		}
	}
}
