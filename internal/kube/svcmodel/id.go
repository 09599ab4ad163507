package svcmodel

import "strings"

// ID identifies a service across all namespaces.
type ID struct {
	Name      string
	Namespace string
}

// String returns namespace/name.
func (id ID) String() string { return id.Namespace + "/" + id.Name }

// Compare orders by namespace, then by name.
func (id ID) Compare(other ID) int {
	if c := strings.Compare(id.Namespace, other.Namespace); c != 0 {
		return c
	}
	return strings.Compare(id.Name, other.Name)
}
