// Package relay brings the state of Kubernetes to agents through etcd, which they watch anyway: a few replicas of contiv-ksr watch the API
// server instead of every node. Agents do the same with either source.
//
// Relay is the writer. It is the sink of a kube.Source, which informs it what the state is; table holds that against what etcd has, and Run
// writes the differences: at once when something changes, in batches when much does, nothing when nothing differs. One replica leads
// (clusterdb.Leadership), the others keep the state available; a write has the leader's key as its condition, so that a deposed leader
// cannot write. The leader follows what it has written: whatever another program changes below the prefix is put right, and when etcd has
// lost its data it is filled again.
//
// MarkerKey is written last: while it is there, the state is complete. Resources is the reader: the kinds of values for an agent's
// clusterdb.Watcher, which keeps to what it knew last while the marker is missing, so that an empty etcd does not look like a cluster
// without services.
package relay
