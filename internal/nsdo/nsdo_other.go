//go:build !linux

package nsdo

import "fmt"

// Namespace is an open network namespace. The nil Namespace is the process's own, and the only one here: only Linux has network
// namespaces that a thread can enter.
type Namespace struct{}

// Open returns nil for "", the process's own namespace; every other path is an error.
func Open(path string) (*Namespace, error) {
	if path == "" {
		return nil, nil
	}
	return nil, fmt.Errorf("network namespace %s: only Linux lets a program work inside of a pod's network namespace", path)
}

// Close does nothing.
func (n *Namespace) Close() error { return nil }

// String returns the name of the namespace in messages.
func (n *Namespace) String() string { return "the agent's network" }

// Do runs f.
func (n *Namespace) Do(f func() error) error { return f() }
