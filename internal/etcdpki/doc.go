// Package etcdpki makes the certificates of the etcd that the manifests install: a CA, a certificate for the agents, and one
// for each member, which issues it to itself when it starts, because only then is its address known. cmd/contiv-init uses
// it.
package etcdpki
