// Package relay transfers the state of Kubernetes to agents through etcd, which they watch anyway: a few replicas of contiv-ksr watch the
// API server instead of every node. Agents work in the same way with either source.
//
// Relay is the writer. It is the sink of a kube.Source, which delivers the state; table compares the state with that in etcd, and Run
// writes the differences: a single change at once, many changes in batches, nothing when nothing differs. One replica leads
// (clusterdb.Leadership), the others keep the state available; each write has the leader's key as its condition, so that a deposed leader
// cannot write. The leader follows the keys that it has written: it reverts changes of other programs below the prefix, and when etcd has
// lost its data it writes all of it again.
//
// MarkerKey is written last: while it exists, the state is complete. Resources is for the reader: it has the kinds of values for an agent's
// clusterdb.Watcher, which keeps the last known state while the marker is missing, so that an empty etcd does not look like a cluster
// without services. An object that is too large for etcd does not prevent the marker (closed.go).
package relay
