// Package servicelabel names the node that the agent runs on. The name (contiv calls it the micro-service label) is the
// Kubernetes node name, or the host name when there is no Kubernetes.
package servicelabel

// ReaderAPI gives the node's name.
type ReaderAPI interface {
	// GetAgentLabel is the node's name.
	GetAgentLabel() string
}

// Label is a fixed node name.
type Label string

// GetAgentLabel implements ReaderAPI.
func (l Label) GetAgentLabel() string { return string(l) }
