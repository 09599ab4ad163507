// Package policy enforces NetworkPolicy.
//
// The plugin passes pods, namespaces, policies and the pods that this node has connected to a compiler (package compiler), and passes the
// resulting changes to a renderer (package renderer), which puts them into the same transaction that connects or disconnects a pod. A pod
// whose object is not known is closed: only its own node reaches it. So are the pods of a namespace whose labels are not known,
// because the agent does not have its object or because the object is too large.
//
// Objects to which nothing refers any more are deleted by the change that makes them unused. All dataplanes delete them after the creates and updates of
// the transaction (scheduler.Descriptor.DeleteLast), so endpoints have working policies at any time. If the agent stops before these deletes, the first
// resync of the next one makes them.
//
// A part of a policy that is not understood is treated as closed and is reported as a Warning Event on the object. If the dataplane has no
// renderer, every policy is such a problem.
package policy
