// Package keyval is the minimal interface of a key-value database that plugins use: typed values under string keys. It
// replaces cn-infra's keyval (docs/adr/0001); internal/clusterdb implements it on etcd.
package keyval
