// Package clusterdb is the agent's access to the shared state of a cluster: an etcd that the operator runs, or one that the agent runs in
// its own process, which is the default and serves a single machine.
//
// DB is a client of either. Its calls are bounded in time; it reconnects automatically after a lost connection, and Connected reports the
// state. The packages that allocate (plugins/nodesync, plugins/idalloc) use it as a cas.Store: conditions and writes on several keys,
// atomically.
//
// Watcher delivers the shared state to the event loop: a complete snapshot (DBResync) at start and whenever the connection was lost or the
// watch fell behind, single changes (KubeStateChange) in between. An answer that is only late does not count as a lost connection. It keeps a copy of the state on the node's disk (LocalCopy), from which
// the agent starts when the database does not respond. LocalCopy also stores the node's own values, such as its identity: a new snapshot of
// the shared state does not replace them.
//
// A resource that another program writes as a whole (Resource.Complete; package relay does so with Kubernetes' state) counts only while it
// is marked as complete: an etcd that has lost it changes nothing on the nodes until it is filled again.
//
// Programs that write such state use Campaign, which elects one of several candidates as the leader, and Follow, which reports the changes
// of others.
package clusterdb
