package renderer

import (
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy/model"
)

// Txn is where values go. In a resync nothing is deleted: what is not put is not desired.
type Txn interface {
	Put(key string, value proto.Message)
	Delete(key string)
}

// Renderer turns policy into northbound values. It is called by the event loop, in the order that package model gives, and needs no state:
// what is deleted is handed to it as it was put. Its values must be such that the pod of an attachment comes up only when its endpoint, and
// what that refers to, is in the dataplane.
//
// Policies and sets that nothing refers to any more are deleted in a separate transaction, after the one that took the last reference
// away.
type Renderer interface {
	// Base puts what does not depend on policies. It is called in each resync.
	Base(txn Txn)
	PutSet(s model.Set, txn Txn)
	ChangeMembers(m model.Members, txn Txn)
	PutPolicy(p model.Policy, txn Txn)
	// PutEndpoint puts what applies to an attachment.
	PutEndpoint(a *podmanager.Attachment, e model.Endpoint, txn Txn)
	DeleteEndpoint(a *podmanager.Attachment, txn Txn)
	DeletePolicy(id model.PolicyID, txn Txn)
	DeleteSet(id model.SetID, txn Txn)
}
