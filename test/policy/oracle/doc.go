// Package oracle compares the policy compiler with cyclonus, whose generator has the cases that Kubernetes' network plugins are tested by,
// and with kube-network-policies, the implementation of the APIs' own project, on random clusters and on the matrices of
// plugins/policy/README.md. It is a module of its own, so that the product depends on neither.
package oracle
