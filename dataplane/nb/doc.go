// Package nb is the northbound model: the configuration that the plugins
// request from a dataplane.
//
// A transaction of the controller is a set of protobuf messages, each under a
// key. Messages and keys are those of the ligato vpp-agent, version 3: the same
// protobuf packages, field names and numbers, and the same key grammar. So
// configuration that a user keeps in etcd for vpp-agent stays valid, and the
// JSON of its tools can be read. We write the .proto files (folder proto) for
// the kinds that we use and depend on none of vpp-agent's code; run gen.sh
// after a change. Fields of vpp-agent that we do not carry are reserved, never
// re-used.
//
// The sub-packages hold the generated messages. This package has what every
// user of a message needs in addition: its key, the empty message of a key, and
// its JSON.
//
// # Keys
//
// The key of a configured object is
//
//	config/<module>/<version>/<type>/<name>
//
// cleaned as path.Join does: a singleton has no name and no trailing slash, and
// repeated slashes collapse. In etcd, the prefix is
// "/vnf-agent/<microservice-label>/". Derived keys (an address of an interface,
// its link state, …) exist only inside the scheduler; they are not cleaned, and
// "<invalid>" replaces an empty name.
//
// Keys are built on every Put and in every dependency, so each key function
// only appends to a buffer, with a single allocation.
package nb
