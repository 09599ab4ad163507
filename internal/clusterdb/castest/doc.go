// Package castest has databases for tests of code that uses internal/clusterdb/cas: Memory, in memory, with fault injection;
// and Cluster, real etcd members in the process of the test, which can be stopped, cut off, wiped and restored from a backup.
package castest
