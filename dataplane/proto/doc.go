// Package proto is the intent bus: the messages that say what a dataplane driver is to do, and what it reports back.
//
// They are felix's (release 3.6, with the route, tunnel, encapsulation and service messages of later ones): same protobuf
// package, field names and numbers, so that felix's peers could be on either side. We write felixbackend.proto ourselves and
// use none of felix's code; run gen.sh after a change. Fields of newer peers that we do not carry are reserved, never
// re-used, and skipped when they arrive. Units and shapes are on the fields.
//
// service.proto is ours alone: services with their backends, for a driver that balances them.
//
// A driver in this process gets the payloads themselves, as pointers (*WorkloadEndpointUpdate, …), and must not change
// them: the sender may keep them. ToDataplane and FromDataplane frame them for a driver elsewhere.
//
// The sender's side of the contract: an object is sent before what refers to it and removed after it; InSync comes once,
// when the snapshot is complete. Between two InSyncs nothing is promised about duplicates: an update may repeat what is known.
package proto
