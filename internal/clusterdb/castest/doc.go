// Package castest has databases for tests of what is built on internal/clusterdb/cas: Memory, in memory, with faults to be
// injected; and Cluster, real etcd members in the process of the test, which can be stopped, cut off, wiped and restored from
// a backup.
package castest
