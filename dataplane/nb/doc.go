// Package nb is the northbound model: what the plugins ask a dataplane for.
//
// A transaction of the controller is a set of protobuf messages, each under a
// key. Messages and keys are those of the ligato vpp-agent, version 3: the same
// protobuf packages, field names and numbers, and the same key grammar. So
// configuration that a user keeps in etcd for vpp-agent stays valid, and its
// tools' JSON can be read. We write the .proto files (folder proto) for the kinds
// we use and depend on none of vpp-agent's code; run gen.sh after a change.
// Fields of vpp-agent that we do not carry are reserved, never re-used.
//
// The packages below this one hold the generated messages. This one holds what
// every user of a message needs beside it: its key, the empty message of a key,
// and its JSON.
//
// # Keys
//
// The key of a configured object is
//
//	config/<module>/<version>/<type>/<name>
//
// cleaned as path.Join does: a singleton has no name and no trailing slash, and
// repeated slashes collapse. In etcd, "/vnf-agent/<microservice-label>/" stands
// before it. Derived keys (an address of an interface, its link state, …) exist
// only inside the scheduler; they are written as they come, with "<invalid>" for
// an empty name.
//
// Keys are made on every Put and in every dependency, so each key function is
// plain appending with a single allocation.
package nb
