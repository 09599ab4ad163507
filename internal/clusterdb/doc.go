// Package clusterdb is the agent's access to what the nodes of a cluster share: an etcd of the operator's, or one that the agent runs in
// its own process, which is the default and serves a single machine.
//
// DB is a client of either. Its calls are bounded in time; a lost connection is survived silently and shows in Connected. Those that
// allocate (plugins/nodesync, plugins/idalloc) use it as a cas.Store: conditions and writes on several keys, atomically.
//
// Watcher brings the shared state into the event loop: a complete snapshot (DBResync) on start and whenever the connection was lost or the
// watch fell behind, single changes (KubeStateChange) in between. It keeps a copy of the state on the node's disk (LocalCopy), from which
// the agent starts when the database does not answer. Beside the copy LocalCopy keeps what is the node's own, such as its identity: that is
// not replaced with the state.
//
// A resource that another program brings as a whole (Resource.Complete; package relay does so with Kubernetes' state) counts only while it
// is marked as complete: an etcd that has lost it changes nothing on the nodes until it is filled again.
//
// Those that write such state have Campaign, by which one of several leads, and Follow, which informs it what others change.
package clusterdb
