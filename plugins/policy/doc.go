// Package policy enforces NetworkPolicy.
//
// The plugin keeps a compiler (package compiler) in line with pods, namespaces, policies and the pods that this node has connected, and
// hands what changes to a renderer (package renderer), which puts it into the same transaction that connects or disconnects a pod. A
// pod whose object is not known is closed: only its own node reaches it.
//
// What nothing refers to any more is deleted in a transaction of its own (sweep). The scheduler deletes before it creates; a set that
// went in the same transaction would be missing for the moment between.
//
// What is not understood of a policy is closed and becomes a Warning Event on the object. Where the dataplane has no renderer, every
// policy is such a problem.
package policy
