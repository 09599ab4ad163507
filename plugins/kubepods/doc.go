// Package kubepods stores this node's pods as Kubernetes reports them, for contiv-netctl check (GET /contiv/v1/kubernetes/pods): it compares them with
// the pods that the agent has connected.
package kubepods
