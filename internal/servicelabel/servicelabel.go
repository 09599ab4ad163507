package servicelabel

// ReaderAPI returns the node's name.
type ReaderAPI interface {
	// GetAgentLabel returns the node's name.
	GetAgentLabel() string
}

// Label is a fixed node name.
type Label string

// GetAgentLabel implements ReaderAPI.
func (l Label) GetAgentLabel() string { return string(l) }
