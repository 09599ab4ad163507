// Package proto defines the messages of the intent bus, by which a dataplane driver gets the desired state and reports results.
//
// The messages are Felix's (release 3.6, with the route, tunnel, encapsulation and service messages of later releases): the
// same protobuf package, field names and numbers, so that a Felix peer can be on either side. felixbackend.proto is our own
// file and contains none of Felix's code; run gen.sh after a change. Fields of newer peers that we do not have are reserved,
// never reused, and ignored when they are received. Units and formats are documented at the fields.
//
// service.proto is our own: services with their backends, for a driver that does the load balancing.
//
// A driver in this process receives the payloads themselves, as pointers (*WorkloadEndpointUpdate, …), and must not change
// them: the sender may keep them. ToDataplane and FromDataplane frame the payloads for a driver in another process.
//
// The sender guarantees that an object is sent before the objects that refer to it and removed after them, and that InSync is
// sent once, when the snapshot is complete. Duplicates are possible between two InSyncs: an update may repeat known state.
package proto
