// Package keyval is the narrow view of a key-value database that plugins use: typed values under string keys. It stands in
// for cn-infra's keyval (docs/adr/0001); internal/clusterdb implements it on etcd.
package keyval
