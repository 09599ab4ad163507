package renderer

import (
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/plugins/policy/model"
)

// Txn is the transaction for values. In a resync nothing is deleted: a value that is not put is not desired.
type Txn interface {
	Put(key string, value proto.Message)
	Delete(key string)
}

// Renderer turns policy into northbound values. The event loop calls it in the order that package model defines. It needs no state: objects
// that are deleted are passed to it as they were put. The values must make sure that the pod of an attachment is connected only when its
// endpoint, and the objects to which that refers, are in the dataplane.
//
// Policies and sets to which nothing refers any more are deleted in the transaction that removes the last reference. Their descriptors, and those of
// members, must delete last (scheduler.Descriptor.DeleteLast), so that endpoints never refer to a missing object.
type Renderer interface {
	// Base puts the values that do not depend on policies. It is called in each resync.
	Base(txn Txn)
	PutSet(s model.Set, txn Txn)
	ChangeMembers(m model.Members, txn Txn)
	PutPolicy(p model.Policy, txn Txn)
	// PutEndpoint puts the policies that apply to an attachment.
	PutEndpoint(a *podmanager.Attachment, e model.Endpoint, txn Txn)
	DeleteEndpoint(a *podmanager.Attachment, txn Txn)
	DeletePolicy(id model.PolicyID, txn Txn)
	DeleteSet(id model.SetID, txn Txn)
}
