// Package policy enforces NetworkPolicy.
//
// The plugin passes pods, namespaces, policies and the pods that this node has connected to a compiler (package compiler), and passes the
// resulting changes to a renderer (package renderer), which puts them into the same transaction that connects or disconnects a pod. A pod
// whose object is not known is closed: only its own node reaches it.
//
// Objects to which nothing refers any more are deleted in a separate transaction (sweep). A transaction may delete before it creates: a set
// that is deleted in the same transaction would be missing until the new policies are in place. The plugin does not know such objects of the
// agent before it; the first resync deletes them, and VPP's descriptors (dataplane/vpp/contiv) delete them last.
//
// A part of a policy that is not understood is treated as closed and is reported as a Warning Event on the object. If the dataplane has no
// renderer, every policy is such a problem.
package policy
