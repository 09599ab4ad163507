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
