package cniapi

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// Version is the version of the protocol.
	Version = 1
	// DefaultSocket is where the agent listens unless it is configured otherwise.
	DefaultSocket = "/run/contiv/cni.sock"
	// maxMessage is the maximum length of a request or a reply; a GC request names every container of a node.
	maxMessage = 1 << 20
	// maxContainerID is the maximum length of a container ID, which has to fit into a file name.
	maxContainerID = 200

	maxIfName = 15
	loopback  = "lo"
	maxNetns  = 4096
)

// Command is a command of CNI.
type Command string

// The commands.
const (
	Add    Command = "add"
	Del    Command = "del"
	Check  Command = "check"
	GC     Command = "gc"
	Status Command = "status"
)

// The error codes of the CNI specification, and (from 100) our own.
const (
	CodeUnknownContainer    = 3
	CodeInvalidEnvironment  = 4
	CodeIO                  = 5
	CodeDecode              = 6
	CodeInvalidConfig       = 7
	CodeInvalidNetns        = 8
	CodeTryAgain            = 11
	CodeNotAvailable        = 50
	CodeLimitedConnectivity = 51
	CodeProtocol            = 100
	CodeForbidden           = 101
	CodeInternal            = 999
)

// Request is a request of contiv-cni to the agent.
type Request struct {
	Version int     `json:"version"`
	Command Command `json:"command"`
	// TimeoutMS is how long the caller waits for the reply; 0: the agent's default.
	TimeoutMS int64   `json:"timeoutMs,omitempty"`
	Network   Network `json:"network,omitzero"`
	// ContainerID and IfName identify the attachment.
	ContainerID string `json:"containerID,omitempty"`
	IfName      string `json:"ifName,omitempty"`
	Netns       string `json:"netns,omitempty"`
	Pod         Pod    `json:"pod,omitzero"`
	// PrevResult is the result of the ADD, for CHECK.
	PrevResult *Result `json:"prevResult,omitempty"`
	// ValidAttachments are the attachments that GC keeps.
	ValidAttachments []AttachmentRef `json:"validAttachments,omitempty"`
}

// Network is the part of the network configuration that the agent uses.
type Network struct {
	Name string `json:"name,omitempty"`
	MTU  int    `json:"mtu,omitempty"`
	DNS  DNS    `json:"dns,omitzero"`
}

// Pod is Kubernetes' data about the container; empty for other runtimes.
type Pod struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
}

// AttachmentRef names an attachment.
type AttachmentRef struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifName"`
}

// wireReply is the agent's answer: either Result or Error is set.
type wireReply struct {
	Version int     `json:"version"`
	Result  *Result `json:"result,omitempty"`
	Error   *Error  `json:"error,omitempty"`
}

// Result is the outcome of an ADD; it is empty for the other commands.
type Result struct {
	Interfaces []Interface `json:"interfaces,omitempty"`
	IPs        []IP        `json:"ips,omitempty"`
	Routes     []Route     `json:"routes,omitempty"`
	DNS        DNS         `json:"dns,omitzero"`
}

// Interface is an interface that belongs to the attachment.
type Interface struct {
	Name    string `json:"name"`
	MAC     string `json:"mac,omitempty"`
	MTU     int    `json:"mtu,omitempty"`
	Sandbox string `json:"sandbox,omitempty"` // empty for an interface of the host
}

// IP is an address of an interface.
type IP struct {
	Interface int          `json:"interface"` // index into Result.Interfaces
	Address   netip.Prefix `json:"address"`   // the address itself, not the network
	Gateway   netip.Addr   `json:"gateway,omitzero"`
}

// Route is a route in the sandbox.
type Route struct {
	Dst netip.Prefix `json:"dst"`
	GW  netip.Addr   `json:"gw,omitzero"`
}

// DNS is the resolver configuration of the sandbox.
type DNS struct {
	Nameservers []string `json:"nameservers,omitempty"`
	Domain      string   `json:"domain,omitempty"`
	Search      []string `json:"search,omitempty"`
	Options     []string `json:"options,omitempty"`
}

// IsZero reports whether nothing is configured.
func (d DNS) IsZero() bool {
	return len(d.Nameservers) == 0 && d.Domain == "" && len(d.Search) == 0 && len(d.Options) == 0
}

// Error is a failure as CNI reports it.
type Error struct {
	Code    uint   `json:"code"`
	Msg     string `json:"msg"`
	Details string `json:"details,omitempty"`
	// Retry is set when the same request will reach another agent soon, because this one is stopping.
	Retry bool `json:"retry,omitempty"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.Details == "" {
		return e.Msg
	}
	return e.Msg + ": " + e.Details
}

// Errorf returns an Error with the given code.
func Errorf(code uint, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Timeout returns how long the caller waits, or fallback if the request does not have this.
func (r *Request) Timeout(fallback time.Duration) time.Duration {
	const longest = 10 * time.Minute
	if r.TimeoutMS <= 0 {
		return fallback
	}
	if r.TimeoutMS > longest.Milliseconds() {
		return longest
	}
	return time.Duration(r.TimeoutMS) * time.Millisecond
}

// String returns the command and its object.
func (r *Request) String() string {
	s := "CNI " + strings.ToUpper(string(r.Command))
	if r.ContainerID != "" {
		s += " " + r.ContainerID + "/" + r.IfName
	}
	if r.Pod.Name != "" {
		s += " (pod " + r.Pod.Namespace + "/" + r.Pod.Name + ")"
	}
	return s
}

// Validate checks everything that the agent relies on, because any program may send a request.
func (r *Request) Validate() *Error {
	if r.Version != Version {
		return Errorf(CodeProtocol, "protocol version %d is not known, only %d is: install contiv-cni and contiv-agent of the same release",
			r.Version, Version)
	}
	switch r.Command {
	case Add, Check, Del:
		if err := r.validateAttachment(); err != nil {
			return err
		}
	case GC:
		for _, a := range r.ValidAttachments {
			if err := validateID(a.ContainerID, a.IfName); err != nil {
				return err
			}
		}
	case Status:
	default:
		return Errorf(CodeProtocol, "unknown command %q", r.Command)
	}
	if r.Network.MTU < 0 || r.Network.MTU > 65535 {
		return Errorf(CodeInvalidConfig, "mtu %d is not within 0 and 65535", r.Network.MTU)
	}
	return nil
}

func (r *Request) validateAttachment() *Error {
	if err := validateID(r.ContainerID, r.IfName); err != nil {
		return err
	}
	if r.Command == Add && r.IfName == loopback {
		return Errorf(CodeInvalidEnvironment, "%s: CNI_IFNAME %s is the name of the loopback device; use another name, such as eth0", r, loopback)
	}
	if r.Netns == "" && r.Command != Del {
		return Errorf(CodeInvalidEnvironment, "%s: CNI_NETNS is missing", r)
	}
	if r.Netns != "" && !IsGUID(r.Netns) && (!filepath.IsAbs(r.Netns) || len(r.Netns) > maxNetns || strings.ContainsRune(r.Netns, 0)) {
		return Errorf(CodeInvalidEnvironment, "%s: CNI_NETNS %q is not an absolute path, nor on Windows the GUID of a namespace", r, r.Netns)
	}
	if (r.Pod.Name == "") != (r.Pod.Namespace == "") {
		return Errorf(CodeInvalidEnvironment, "%s: CNI_ARGS has only one of K8S_POD_NAME and K8S_POD_NAMESPACE", r)
	}
	return nil
}

// validateID checks that the container ID and the interface name are valid according to the specification; they
// become part of a file name.
func validateID(containerID, ifName string) *Error {
	if containerID == "" || len(containerID) > maxContainerID || !isAlnum(containerID[0]) {
		return Errorf(CodeInvalidEnvironment, "container ID %q is not of 1 to %d letters, digits, '.', '_', '-'", containerID, maxContainerID)
	}
	for i := range len(containerID) {
		if c := containerID[i]; !isAlnum(c) && c != '_' && c != '.' && c != '-' {
			return Errorf(CodeInvalidEnvironment, "container ID %q has a character that is not allowed", containerID)
		}
	}
	if ifName == "" || len(ifName) > maxIfName || ifName == "." || ifName == ".." || !utf8.ValidString(ifName) {
		return Errorf(CodeInvalidEnvironment, "interface name %q is not a name of 1 to %d bytes", ifName, maxIfName)
	}
	for _, c := range ifName {
		if c == '/' || c == ':' || c == 0 || unicode.IsSpace(c) {
			return Errorf(CodeInvalidEnvironment, "interface name %q has a character that is not allowed", ifName)
		}
	}
	return nil
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
