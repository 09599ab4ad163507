// Package kube brings the state of Kubernetes into the event loop. It is the only package that uses client-go.
//
// One reflector per resource lists and watches the API server (watch lists are streamed where the server can). What comes is converted at
// once into the small messages of package model, so that no API object is kept, and goes into one mirror (mirror.go), which is pure. The
// mirror has what has been reported to the event loop and what differs from it by now: changes that change nothing for us vanish there,
// several changes of one object that meet a full queue become one, and a relist after the connection was lost becomes exactly the
// differences, deletions that nothing saw included. When there are more differences than a resync is worth, it is a resync.
//
// Source is the driver: jobs that watch, one that delivers, one that writes the local copy (a bbolt file, late and in batches). If the API
// server does not answer at start, the agent starts with the local copy; when the server comes back the difference to the copy is
// delivered.
//
// The event loop takes snapshots as a whole. Join makes one snapshot of those of etcd and of Kubernetes.
//
// Messages are protobuf, so that they can also travel through etcd as contiv-ksr's did: package relay takes the events of one Source and
// writes them under model.Key, and agents follow etcd instead of the API server.
package kube
