// Package cas is the vocabulary of atomic changes in the cluster database: conditions on what was read, and writes that are carried out
// together or not at all. It has no code, so that those that change shared state (plugins/nodesync, plugins/idalloc) and the client of the
// database (internal/clusterdb) need not know each other.
package cas
