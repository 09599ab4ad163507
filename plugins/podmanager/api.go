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

// PodID names a pod. Without Kubernetes the namespace is empty and the name is the container's ID.
type PodID struct {
	Namespace string
	Name      string
}

// String is namespace/name.
func (id PodID) String() string {
	if id.Namespace == "" {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// AttachmentID identifies one interface of one sandbox, as CNI does: everything that is done on ADD and DEL goes by it, so
// that a late DEL of an older sandbox cannot touch the newer one.
type AttachmentID struct {
	ContainerID string
	IfName      string
}

// String is containerID/ifName.
func (id AttachmentID) String() string { return id.ContainerID + "/" + id.IfName }

// Attachment is a pod's interface which CNI asked for and which has not been deleted yet. Values are immutable; they
// survive an agent restart (the attachment store in the agent's run directory).
type Attachment struct {
	ID    AttachmentID
	Pod   PodID
	Netns string // path of the network namespace as the runtime gave it
	// NetnsInode distinguishes a namespace from a later one under the same path; 0 when unknown.
	NetnsInode uint64
	// Addresses of the interface with the prefix length that the pod sees (/32, /128); at most one per family. Empty
	// until ipnet has allocated them.
	Addresses []netip.Prefix
	// MTU wanted by the network configuration, 0 for the node's default.
	MTU int
	// Network is the name of the CNI network, within which GC works.
	Network string
	// DNS is what the network configuration and the runtime want the pod to resolve names by. Linux' pods have it in a file, from the
	// runtime; those of Windows from their interface.
	DNS cniapi.DNS
	// PodUID is Kubernetes' UID of the pod, empty when the runtime does not tell.
	PodUID string
	// Seq grows with every new attachment; of several attachments of one pod the one with the highest Seq is current. An
	// ADD that repeats an earlier one leaves it, so that it cannot make an old sandbox current again.
	Seq uint64
}

// API is what other plugins use of podmanager. Only to be called from the event loop, unless said otherwise.
type API interface {
	// LocalAttachments returns all attachments of this node in the order of their Seq.
	LocalAttachments() []*Attachment
	// Current returns the newest attachment of a pod.
	Current(pod PodID) (*Attachment, bool)
	// SetAddresses records the addresses of an attachment, durably, before the dataplane is programmed.
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

// AddPod is the blocking Update event that a CNI ADD turns into. Handlers fill the output fields.
type AddPod struct {
	Attachment *Attachment // without addresses, unless the ADD repeats an earlier one

	// output, filled by ipnet
	Interfaces []PodInterface
	IPs        []PodIP
	Routes     []PodRoute

	result chan error
	onDone func(error)
	begun  bool        // Update has seen it
	since  time.Time   // when the present stage began
	prev   *Attachment // known under this ID before Update
}

// NewAddPod is an AddPod for a.
func NewAddPod(a *Attachment) *AddPod { return &AddPod{Attachment: a, result: make(chan error, 1)} }

// GetName implements api.Event.
func (ev *AddPod) GetName() string { return "Add Pod" }

// String implements api.Event.
func (ev *AddPod) String() string {
	return "Add Pod " + ev.Attachment.Pod.String() + " (container " + ev.Attachment.ID.String() + ")"
}

// Method is Update.
func (ev *AddPod) Method() api.EventMethodType { return api.Update }

// TransactionType is RevertOnFailure.
func (ev *AddPod) TransactionType() api.UpdateTransactionType { return api.RevertOnFailure }

// Direction is Forward.
func (ev *AddPod) Direction() api.UpdateDirectionType { return api.Forward }

// IsBlocking is true.
func (ev *AddPod) IsBlocking() bool { return true }

// Done implements api.Event.
func (ev *AddPod) Done(err error) {
	if ev.onDone != nil {
		ev.onDone(err)
	}
	ev.result <- err
}

// Result delivers the outcome, once.
func (ev *AddPod) Result() <-chan error { return ev.result }

// DeletePod is the blocking Update event that a CNI DEL (or GC) turns into.
type DeletePod struct {
	Attachment *Attachment
	result     chan error
	onDone     func(error)
}

// NewDeletePod is a DeletePod for a.
func NewDeletePod(a *Attachment) *DeletePod {
	return &DeletePod{Attachment: a, result: make(chan error, 1)}
}

// GetName implements api.Event.
func (ev *DeletePod) GetName() string { return "Delete Pod" }

// String implements api.Event.
func (ev *DeletePod) String() string {
	return "Delete Pod " + ev.Attachment.Pod.String() + " (container " + ev.Attachment.ID.String() + ")"
}

// Method is Update.
func (ev *DeletePod) Method() api.EventMethodType { return api.Update }

// TransactionType is BestEffortIgnoreErrors.
func (ev *DeletePod) TransactionType() api.UpdateTransactionType { return api.BestEffortIgnoreErrors }

// Direction is Reverse.
func (ev *DeletePod) Direction() api.UpdateDirectionType { return api.Reverse }

// IsBlocking is true.
func (ev *DeletePod) IsBlocking() bool { return true }

// Done implements api.Event.
func (ev *DeletePod) Done(err error) {
	if ev.onDone != nil {
		ev.onDone(err)
	}
	ev.result <- err
}

// Result delivers the outcome, once.
func (ev *DeletePod) Result() <-chan error { return ev.result }
