// Package kube delivers the state of Kubernetes to the event loop. It is the only package that uses client-go.
//
// One reflector per resource lists and watches the API server (watch lists are streamed where the server can). Each object is converted at
// once into the small messages of package model, so that no API object is kept, and stored in one mirror (mirror.go), which does no I/O.
// The mirror holds the state that was reported to the event loop and the differences between that state and the current one: changes that
// do not change a message are dropped, several changes of one object during a full queue become one, and a relist after a lost connection
// becomes exactly the differences, including deletions that no watch has reported. When there are too many differences, a resync replaces
// them.
//
// Source is the driver: jobs that watch, one that delivers, one that writes the local copy (a bbolt file, late and in batches). If the API
// server does not respond at start, the agent starts with the local copy; when the server answers again the difference to the copy is
// delivered.
//
// The event loop takes only snapshots of the whole state. Join combines the snapshots of etcd and of Kubernetes into one.
//
// Messages are protobuf, so that they can also be stored in etcd, as contiv-ksr did: package relay takes the events of one Source and
// writes them under model.Key, and agents follow etcd instead of the API server.
package kube
