//go:build !linux

package nsdo

import "fmt"

// Namespace is an open network namespace. The nil Namespace is the process's own, and the only one here: other systems than Linux
// have no network namespaces that a thread could enter.
type Namespace struct{}

// Open opens the process's own namespace, nil; every other one is an error.
func Open(path string) (*Namespace, error) {
	if path == "" {
		return nil, nil
	}
	return nil, fmt.Errorf("network namespace %s: only Linux lets a program work inside of a pod's network namespace", path)
}

// Close lets go of the namespace.
func (n *Namespace) Close() error { return nil }

// String names the namespace in messages.
func (n *Namespace) String() string { return "the agent's network" }

// Do runs f.
func (n *Namespace) Do(f func() error) error { return f() }
