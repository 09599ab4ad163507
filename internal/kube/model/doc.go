// Package model has the agent's form of Kubernetes objects, as protobuf messages: KubeStateChange events and resync snapshots carry
// them, and the local copy stores them. internal/kube converts API objects to messages, once; plugins read messages and do not
// depend on client-go. Messages are shared between all their users and never changed.
package model

//go:generate ./gen.sh
