// Package cas has the types of atomic changes in the cluster database: conditions on values that were read, and writes that are carried
// out together or not at all. It has no code, so that the packages that change shared state (plugins/nodesync, plugins/idalloc) and the
// client of the database (internal/clusterdb) do not depend on each other.
package cas
