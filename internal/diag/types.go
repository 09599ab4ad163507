package diag

import "net/netip"

// The paths of the requests.
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

// AgentInfo is the answer to GET AgentPath: what this agent is, and how to reach the agents of other nodes.
type AgentInfo struct {
	Node      string   `json:"node"`
	Dataplane string   `json:"dataplane"` // vpp, fake, linux
	Version   string   `json:"version"`
	Commit    string   `json:"commit,omitempty"`
	Go        string   `json:"go,omitempty"`
	VPP       *VPPInfo `json:"vpp,omitempty"` // the connected VPP, if there is one
	Started   string   `json:"started"`       // RFC 3339
	Transport string   `json:"transport,omitempty"`
	CLIWrite  bool     `json:"vppCLIWrite"`
	Access    Access   `json:"access"`
	Problems  []string `json:"problems,omitempty"` // why the agent is not ready
	// Warnings are faults of the data path while the agent is ready.
	Warnings []Warning `json:"warnings,omitempty"`
}

// VPPInfo describes the VPP of a node.
type VPPInfo struct {
	Version string `json:"version"`
	// Plugin is the version of our plugin in this VPP; empty if VPP does not have the plugin.
	Plugin string `json:"plugin,omitempty"`
}

// Configuration is the answer to GET ConfigPath: how the agent was started. It has the names of secret files, not their
// contents.
type Configuration struct {
	Arguments []string `json:"arguments"`
	// Files are the current configuration files by name, such as contiv.conf.
	Files map[string]string `json:"files"`
}

// Warning is a fault.
type Warning struct {
	Object string `json:"object"` // the object that has the fault: a device, a node
	Text   string `json:"text"`
}

// Access is how the agent's REST API is reached from other nodes. All agents are expected to have the same configuration, so
// that it is also how this agent reaches other agents. It has the names of files, not their contents.
type Access struct {
	Address   string `json:"address"` // host:port on which it listens
	TLS       bool   `json:"tls"`
	CAFile    string `json:"caFile,omitempty"`
	TokenFile string `json:"tokenFile,omitempty"`
	// ReadTokenFile is the file of the token that allows GET only.
	ReadTokenFile string `json:"readTokenFile,omitempty"`
}

// CLIRequest is the body of POST CLIPath.
type CLIRequest struct {
	Command string `json:"command"`
	Write   bool   `json:"write,omitempty"` // the caller accepts that the command may change VPP's state
}

// CLIReply is the answer to a CLIRequest.
type CLIReply struct {
	Output string `json:"output"`
}

// ProbeRequest is the body of POST ProbePath.
type ProbeRequest struct {
	// Namespace and Pod name the pod of this node that sends; both empty: the node itself sends.
	Namespace string     `json:"namespace,omitempty"`
	Pod       string     `json:"pod,omitempty"`
	To        netip.Addr `json:"to"`
	Proto     string     `json:"proto"` // icmp, tcp, udp
	Port      uint16     `json:"port,omitempty"`
	Count     int        `json:"count,omitempty"`      // default 1
	TimeoutMs int        `json:"timeoutMs,omitempty"`  // for each answer; default 1000
	PauseMs   int        `json:"intervalMs,omitempty"` // between probes; default 0
	Size      int        `json:"size,omitempty"`       // of the payload of echo requests; default 56
	// SourcePort is the source port, or the identifier of echo requests; 0: any. With tcp or udp, only one probe can have it.
	SourcePort uint16 `json:"sourcePort,omitempty"`
}

// ProbeResult is the answer to a ProbeRequest.
type ProbeResult struct {
	Source   netip.Addr `json:"source"` // the source address of the probes, if known
	Sent     int        `json:"sent"`
	Received int        `json:"received"`
	// RTTMs are the round trip times in milliseconds, in the order of the answers.
	RTTMs []float64 `json:"rttMs"`
	// Errors describe what was received instead of answers, each once: "connection refused", "destination unreachable from …".
	Errors []string `json:"errors,omitempty"`
}

// TraceRequest is the body of POST TracePath: which packets to record, in both directions.
type TraceRequest struct {
	Source netip.Addr `json:"source"`
	Dest   netip.Addr `json:"dest"`
	Proto  string     `json:"proto"` // icmp, tcp, udp
	Port   uint16     `json:"port,omitempty"`
	// SourcePort is the source port of the packets, or the identifier of echo requests; 0: every packet of the flow is recorded.
	SourcePort uint16 `json:"sourcePort,omitempty"`
	// OtherSources are addresses with which nodes on the way may replace Source.
	OtherSources []netip.Addr `json:"otherSources,omitempty"`
	Packets      int          `json:"packets,omitempty"` // VPP: maximum for each input node; default 200
	// Namespace and Pod name the pod of this node that sends, if one does: its routes are checked too.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	// Service is true if Dest is an address of a service, which a node translates to one of Backends before it routes.
	Service  bool             `json:"service,omitempty"`
	Backends []netip.AddrPort `json:"backends,omitempty"`
}

// TraceEvent is one line of the answer to POST TracePath: the first line reports that recording has begun, the second has the
// recorded packets.
type TraceEvent struct {
	ID      string   `json:"id,omitempty"`
	Capture *Capture `json:"capture,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Capture is the recording of a node.
type Capture struct {
	Dataplane  string      `json:"dataplane"`
	Text       string      `json:"text"` // output of "show trace", or of "nft monitor trace"
	Interfaces []Interface `json:"interfaces"`
	// Errors are VPP's error counters that have risen during the recording, or drops counted by devices.
	Errors []ErrorCount `json:"errors"`
	// Facts are the results of queries on what happens to the packet: routes, neighbours.
	Facts []Fact   `json:"facts,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Interface maps an interface index to its names.
type Interface struct {
	Index   uint32 `json:"index"`
	Name    string `json:"name"` // tap1, cali1234
	Logical string `json:"logical,omitempty"`
	Pod     string `json:"pod,omitempty"` // namespace/name
}

// ErrorCount is a counter and its increase.
type ErrorCount struct {
	Where  string `json:"where"`
	Reason string `json:"reason"`
	Count  uint64 `json:"count"`
}

// Fact is a result of a query, such as the kernel's route to an address.
type Fact struct {
	Where   string `json:"where"` // "pod", "node"
	What    string `json:"what"`  // "route", "neighbour"
	Text    string `json:"text"`
	Problem bool   `json:"problem,omitempty"` // a packet is lost here
	// Backend is the destination, for a packet to a service that may go to one of several backends.
	Backend string `json:"backend,omitempty"`
}

// Repair is a difference between the programmed values and the dataplane.
type Repair struct {
	Key    string `json:"key"`
	Action string `json:"action"` // what a resync would do: create, update, delete
}

// CheckReply is the answer to POST CheckPath.
type CheckReply struct {
	Checked int      `json:"checked"` // number of values
	Repairs []Repair `json:"repairs"`
	// TypedRoutes are routes to pods that another program has added at VPP's command line: they take precedence over the
	// agent's.
	TypedRoutes []string `json:"typedRoutes,omitempty"`
}

// Kernel is the answer to GET KernelPath.
type Kernel struct {
	Routes     []KernelRoute     `json:"routes"`
	Neighbours []KernelNeighbour `json:"neighbours"`
	Forwarding []KernelForward   `json:"forwarding"`
	Links      []KernelLink      `json:"links"`
	// NotForwarding are the families whose packets this node does not forward.
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
