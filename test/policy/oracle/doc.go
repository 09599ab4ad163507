// Package oracle compares the policy compiler with cyclonus, whose generator has the cases that Kubernetes' network plugins are tested by.
// It is a module of its own, so that the product does not depend on cyclonus.
package oracle
