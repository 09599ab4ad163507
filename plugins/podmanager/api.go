package podmanager

import (
	"contiv.dev/vswitch/internal/cniapi"
	"errors"
	"net/netip"
	"time"

	"contiv.dev/vswitch/plugins/controller/api"
)

// ErrTryAgain marks failures that the caller should retry later (CNI error code 11).
var ErrTryAgain = errors.New("try again later")

// PodID identifies a pod. Without Kubernetes the namespace is empty and the name is the container's ID.
type PodID struct {
	Namespace string
	Name      string
}

// String returns namespace/name.
func (id PodID) String() string {
	if id.Namespace == "" {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// AttachmentID identifies one interface of one sandbox, as in CNI: ADD and DEL are handled by this ID, so that a late DEL of an older
// sandbox cannot affect the newer one.
type AttachmentID struct {
	ContainerID string
	IfName      string
}

// String returns containerID/ifName.
func (id AttachmentID) String() string { return id.ContainerID + "/" + id.IfName }

// Attachment is a pod's interface that CNI has requested and that has not been deleted yet. Values are immutable; they survive an agent
// restart (the attachment store in the agent's run directory).
type Attachment struct {
	ID    AttachmentID
	Pod   PodID
	Netns string // path of the network namespace from the runtime
	// NetnsInode distinguishes a namespace from a later one under the same path; 0 when unknown.
	NetnsInode uint64
	// Addresses are the addresses of the interface with the prefix length in the pod (/32, /128); at most one per family. Empty until ipnet
	// has allocated them.
	Addresses []netip.Prefix
	// MTU is the MTU from the network configuration, 0 for the node's default.
	MTU int
	// Network is the name of the CNI network; GC handles one network.
	Network string
	// DNS is the DNS configuration from the network configuration and the runtime. Linux pods have it in a file, written by the runtime;
	// Windows pods have it from their interface.
	DNS cniapi.DNS
	// PodUID is the UID of the pod in Kubernetes; empty if the runtime does not report it.
	PodUID string
	// Seq grows with every new attachment; of several attachments of one pod the one with the highest Seq is current. An ADD that repeats
	// an earlier one does not change Seq, so that it cannot make an old sandbox current again.
	Seq uint64
}

// API is the interface of podmanager for other plugins. The methods may be called only from the event loop, unless stated otherwise.
type API interface {
	// LocalAttachments returns all attachments of this node in the order of their Seq.
	LocalAttachments() []*Attachment
	// Current returns the newest attachment of a pod.
	Current(pod PodID) (*Attachment, bool)
	// SetAddresses stores the addresses of an attachment in its file, before the dataplane is programmed.
	SetAddresses(id AttachmentID, addrs []netip.Prefix) error
}

// PodInterface is one interface of the result of an ADD.
type PodInterface struct {
	Name    string // name in the sandbox, or of the host's end when Sandbox is empty
	MAC     string
	MTU     int
	Sandbox string
}

// PodIP is one address of the result of an ADD.
type PodIP struct {
	Address netip.Prefix
	Gateway netip.Addr
	// Interface is the index into AddPod.Interfaces.
	Interface int
}

// PodRoute is one route of the result of an ADD.
type PodRoute struct {
	Dst netip.Prefix
	GW  netip.Addr
}

// AddPod is the blocking Update event for a CNI ADD. Handlers fill the output fields.
type AddPod struct {
	Attachment *Attachment // without addresses, unless the ADD repeats an earlier one

	// output, filled by ipnet
	Interfaces []PodInterface
	IPs        []PodIP
	Routes     []PodRoute

	result chan error
	onDone func(error)
	begun  bool        // Update has handled it
	since  time.Time   // the start of the current stage
	prev   *Attachment // the attachment with this ID before Update
}

// NewAddPod returns an AddPod for a.
func NewAddPod(a *Attachment) *AddPod { return &AddPod{Attachment: a, result: make(chan error, 1)} }

// GetName implements api.Event.
func (ev *AddPod) GetName() string { return "Add Pod" }

// String implements api.Event.
func (ev *AddPod) String() string {
	return "Add Pod " + ev.Attachment.Pod.String() + " (container " + ev.Attachment.ID.String() + ")"
}

// Method returns Update.
func (ev *AddPod) Method() api.EventMethodType { return api.Update }

// TransactionType returns RevertOnFailure.
func (ev *AddPod) TransactionType() api.UpdateTransactionType { return api.RevertOnFailure }

// Direction returns Forward.
func (ev *AddPod) Direction() api.UpdateDirectionType { return api.Forward }

// IsBlocking returns true.
func (ev *AddPod) IsBlocking() bool { return true }

// Done implements api.Event.
func (ev *AddPod) Done(err error) {
	if ev.onDone != nil {
		ev.onDone(err)
	}
	ev.result <- err
}

// Result returns a channel that delivers the outcome, once.
func (ev *AddPod) Result() <-chan error { return ev.result }

// DeletePod is the blocking Update event for a CNI DEL (or GC).
type DeletePod struct {
	Attachment *Attachment
	result     chan error
	onDone     func(error)
}

// NewDeletePod returns a DeletePod for a.
func NewDeletePod(a *Attachment) *DeletePod {
	return &DeletePod{Attachment: a, result: make(chan error, 1)}
}

// GetName implements api.Event.
func (ev *DeletePod) GetName() string { return "Delete Pod" }

// String implements api.Event.
func (ev *DeletePod) String() string {
	return "Delete Pod " + ev.Attachment.Pod.String() + " (container " + ev.Attachment.ID.String() + ")"
}

// Method returns Update.
func (ev *DeletePod) Method() api.EventMethodType { return api.Update }

// TransactionType returns BestEffortIgnoreErrors.
func (ev *DeletePod) TransactionType() api.UpdateTransactionType { return api.BestEffortIgnoreErrors }

// Direction returns Reverse.
func (ev *DeletePod) Direction() api.UpdateDirectionType { return api.Reverse }

// IsBlocking returns true.
func (ev *DeletePod) IsBlocking() bool { return true }

// Done implements api.Event.
func (ev *DeletePod) Done(err error) {
	if ev.onDone != nil {
		ev.onDone(err)
	}
	ev.result <- err
}

// Result returns a channel that delivers the outcome, once.
func (ev *DeletePod) Result() <-chan error { return ev.result }
