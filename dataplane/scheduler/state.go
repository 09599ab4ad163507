package scheduler

import "fmt"

// String returns the name that vpp-agent uses for the state.
func (s State) String() string {
	switch s {
	case Nonexistent:
		return "NONEXISTENT"
	case Missing:
		return "MISSING"
	case Unknown:
		return "UNKNOWN"
	case Removed:
		return "REMOVED"
	case Configured:
		return "CONFIGURED"
	case Obtained:
		return "OBTAINED"
	case Discovered:
		return "DISCOVERED"
	case Pending:
		return "PENDING"
	case Invalid:
		return "INVALID"
	case Failed:
		return "FAILED"
	case Retrying:
		return "RETRYING"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// MarshalText makes the state readable in JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the output of MarshalText.
func (s *State) UnmarshalText(text []byte) error {
	for c := Nonexistent; c <= Retrying; c++ {
		if c.String() == string(text) {
			*s = c
			return nil
		}
	}
	return fmt.Errorf("no such state: %q", text)
}
