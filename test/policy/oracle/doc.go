// Package oracle compares the policy compiler with cyclonus, whose generator has the cases with which Kubernetes' network plugins are
// tested, and with kube-network-policies, the implementation of the project that defines the APIs, on random clusters and on the matrices
// of plugins/policy/README.md. It is a separate module, so that the product depends on neither.
package oracle
