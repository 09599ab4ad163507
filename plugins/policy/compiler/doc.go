// Package compiler turns Kubernetes objects into the sets, policies and endpoints of package model. It is pure: it does no I/O and has no
// clock.
//
// The caller reports changes (SetPod, SetNamespace, SetPolicy, SetEndpoint) in any order, and Flush returns the difference in the output
// since the last Flush. The output depends only on the objects and not on the order of the changes.
//
// The output contains what this node needs: the policies that select at least one of its endpoints, and the sets to which their rules
// refer.
//
// The cost of a change is proportional to the size of the change:
//
//   - Each selector is compiled once, even if many rules use it (selection.go). Selectors are indexed by one label that they require,
//     and by the namespaces to which they apply; so a pod whose labels change is only compared with selectors that may select it.
//   - Pods are indexed by namespace and label; so a new selector is only compared with pods that have its label.
//   - There are two selections. One relates all pods of the cluster to the selectors of peers; the other relates the endpoints of
//     this node to the selectors of policies.
package compiler
