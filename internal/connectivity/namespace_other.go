//go:build !linux

package connectivity

import "errors"

// errNoNamespaces is the error on other systems than Linux: a test pod is a network namespace
// without containers, which only Linux has.
var errNoNamespaces = errors.New("test pods exist on Linux nodes only; on this node, test with a pod of Kubernetes")

func makeNamespace(string) error { return errNoNamespaces }

// removeNamespace does nothing, because no namespace exists.
func removeNamespace(string) error { return nil }
