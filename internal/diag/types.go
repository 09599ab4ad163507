package diag

import "net/netip"

// The paths.
const (
	CLIPath       = "/vpp/cli"
	ProbePath     = "/contiv/v1/probe"
	TracePath     = "/contiv/v1/trace"
	TraceStopPath = "/contiv/v1/trace/stop"
	CheckPath     = "/contiv/v1/check"
	KernelPath    = "/contiv/v1/kernel"
	AgentPath     = "/contiv/v1/agent"
	ConfigPath    = "/contiv/v1/configuration"
	RulesetPath   = "/contiv/v1/ruleset"
)

// AgentInfo is the answer to GET AgentPath: what this agent is, and how those of other nodes are reached.
type AgentInfo struct {
	Node      string   `json:"node"`
	Dataplane string   `json:"dataplane"` // vpp, fake, linux
	Version   string   `json:"version"`
	Commit    string   `json:"commit,omitempty"`
	Go        string   `json:"go,omitempty"`
	VPP       *VPPInfo `json:"vpp,omitempty"` // of the VPP that is connected, if there is one
	Started   string   `json:"started"`       // RFC 3339
	Transport string   `json:"transport,omitempty"`
	CLIWrite  bool     `json:"vppCLIWrite"`
	Access    Access   `json:"access"`
	Problems  []string `json:"problems,omitempty"` // why it is not ready
	// Warnings are what is wrong with the data path although it is ready.
	Warnings []Warning `json:"warnings,omitempty"`
}

// VPPInfo reports which VPP a node has.
type VPPInfo struct {
	Version string `json:"version"`
	// Plugin is the version of our plugin in it; empty if it has none.
	Plugin string `json:"plugin,omitempty"`
}

// Configuration is the answer to GET ConfigPath: how the agent was started. Files of secrets are named, not shown.
type Configuration struct {
	Arguments []string `json:"arguments"`
	// Files are the configuration files by name, such as contiv.conf, as they are now.
	Files map[string]string `json:"files"`
}

// Warning is something that is wrong.
type Warning struct {
	Object string `json:"object"` // what it is about: a device, a node
	Text   string `json:"text"`
}

// Access is how the agent's REST API is reached from other nodes. All agents are expected to be configured alike, so that it is
// also how other agents are reached from this one. Files are named, not shown.
type Access struct {
	Address   string `json:"address"` // host:port that it listens on
	TLS       bool   `json:"tls"`
	CAFile    string `json:"caFile,omitempty"`
	TokenFile string `json:"tokenFile,omitempty"`
	// ReadTokenFile has the token that allows GET only.
	ReadTokenFile string `json:"readTokenFile,omitempty"`
}

// CLIRequest is the body of POST CLIPath.
type CLIRequest struct {
	Command string `json:"command"`
	Write   bool   `json:"write,omitempty"` // the caller accepts that the command may change VPP's state
}

// CLIReply is the answer.
type CLIReply struct {
	Output string `json:"output"`
}

// ProbeRequest is the body of POST ProbePath.
type ProbeRequest struct {
	// Namespace and Pod name the pod of this node that sends; both empty: the node itself.
	Namespace string     `json:"namespace,omitempty"`
	Pod       string     `json:"pod,omitempty"`
	To        netip.Addr `json:"to"`
	Proto     string     `json:"proto"` // icmp, tcp, udp
	Port      uint16     `json:"port,omitempty"`
	Count     int        `json:"count,omitempty"`      // 1
	TimeoutMs int        `json:"timeoutMs,omitempty"`  // for each answer; 1000
	PauseMs   int        `json:"intervalMs,omitempty"` // between probes; 0
	Size      int        `json:"size,omitempty"`       // of the payload of echo requests; 56
}

// ProbeResult is the answer.
type ProbeResult struct {
	Source   netip.Addr `json:"source"` // the address that the probes had, if known
	Sent     int        `json:"sent"`
	Received int        `json:"received"`
	// RTTMs are the round trip times in milliseconds, in the order of the answers.
	RTTMs []float64 `json:"rttMs"`
	// Errors say what came instead of answers, each once: "connection refused", "destination unreachable from …".
	Errors []string `json:"errors,omitempty"`
}

// TraceRequest is the body of POST TracePath: which packets to record, in both directions.
type TraceRequest struct {
	Source netip.Addr `json:"source"`
	Dest   netip.Addr `json:"dest"`
	Proto  string     `json:"proto"` // icmp, tcp, udp
	Port   uint16     `json:"port,omitempty"`
	// OtherSources are addresses that nodes on the way may put in the place of Source.
	OtherSources []netip.Addr `json:"otherSources,omitempty"`
	Packets      int          `json:"packets,omitempty"` // VPP: how many of each input node; 200
	// From is the pod of this node that sends, if one does: its side of the way is looked at too.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	// Service says that Dest is an address of a service, which a node translates to one of Backends before it routes.
	Service  bool             `json:"service,omitempty"`
	Backends []netip.AddrPort `json:"backends,omitempty"`
}

// TraceEvent is one line of the answer to POST TracePath: the first says that recording has begun, the second what it has
// found.
type TraceEvent struct {
	ID      string   `json:"id,omitempty"`
	Capture *Capture `json:"capture,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Capture is what was recorded on a node.
type Capture struct {
	Dataplane  string      `json:"dataplane"`
	Text       string      `json:"text"` // of "show trace", or of "nft monitor trace"
	Interfaces []Interface `json:"interfaces"`
	// Errors are VPP's error counters that have risen meanwhile, or drops counted by devices.
	Errors []ErrorCount `json:"errors"`
	// Facts are the kernel's answers on what happens to the packet: routes, neighbours.
	Facts []Fact   `json:"facts,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Interface ties names together.
type Interface struct {
	Index   uint32 `json:"index"`
	Name    string `json:"name"` // tap1, cali1234
	Logical string `json:"logical,omitempty"`
	Pod     string `json:"pod,omitempty"` // namespace/name
}

// ErrorCount is a counter and by how much it has risen.
type ErrorCount struct {
	Where  string `json:"where"`
	Reason string `json:"reason"`
	Count  uint64 `json:"count"`
}

// Fact is an answer of the kernel.
type Fact struct {
	Where   string `json:"where"` // "pod", "node"
	What    string `json:"what"`  // "route", "neighbour"
	Text    string `json:"text"`
	Problem bool   `json:"problem,omitempty"` // a packet is lost here
	// Backend is where the packet is going, for a packet to a service that may go to one of several.
	Backend string `json:"backend,omitempty"`
}

// Repair is a difference between what is programmed and what is in the dataplane.
type Repair struct {
	Key    string `json:"key"`
	Action string `json:"action"` // what a resync would do: create, update, delete
}

// CheckReply is the answer to POST CheckPath.
type CheckReply struct {
	Checked int      `json:"checked"` // values
	Repairs []Repair `json:"repairs"`
	// TypedRoutes are routes to pods that another program has typed in at VPP's command line: they go before the agent's.
	TypedRoutes []string `json:"typedRoutes,omitempty"`
}

// Kernel is the answer to GET KernelPath.
type Kernel struct {
	Routes     []KernelRoute     `json:"routes"`
	Neighbours []KernelNeighbour `json:"neighbours"`
	Forwarding []KernelForward   `json:"forwarding"`
	Links      []KernelLink      `json:"links"`
	// NotForwarding are the families whose packets this node does not pass on.
	NotForwarding []string `json:"notForwarding,omitempty"`
}

// KernelRoute is a unicast route of the main table.
type KernelRoute struct {
	Dst    string `json:"dst"`
	Via    string `json:"via,omitempty"`
	Device string `json:"device,omitempty"`
	Type   string `json:"type"` // unicast, blackhole, …
	Proto  int    `json:"proto"`
}

// KernelNeighbour is an address of a neighbour.
type KernelNeighbour struct {
	IP     string `json:"ip"`
	MAC    string `json:"mac"`
	Device string `json:"device"`
	State  string `json:"state"`
}

// KernelForward is a forwarding entry of a VXLAN device.
type KernelForward struct {
	MAC    string `json:"mac"`
	Dst    string `json:"dst"`
	Device string `json:"device"`
}

// KernelLink is a device.
type KernelLink struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	MAC     string `json:"mac,omitempty"`
	MTU     int    `json:"mtu"`
	Up      bool   `json:"up"`
	VNI     int    `json:"vni,omitempty"`
	Local   string `json:"local,omitempty"` // a VXLAN device's own address
	RxBytes uint64 `json:"rxBytes"`
	TxBytes uint64 `json:"txBytes"`
	Dropped uint64 `json:"dropped"`
}
