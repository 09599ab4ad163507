// Package model is the agent's view of Kubernetes objects, as protobuf messages: they travel in KubeStateChange events and resync
// snapshots, and the local copy stores them. internal/kube makes them out of API objects, once; plugins read them and need not know
// client-go. Messages are shared between all that hold them and never changed.
package model

//go:generate ./gen.sh
