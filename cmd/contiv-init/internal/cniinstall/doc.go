// Package cniinstall installs the CNI plugin where the container runtime looks for it: binaries in /opt/cni/bin, one configuration list in
// /etc/cni/net.d. It is used by cmd/contiv-init.
//
// The runtime may read both directories at any time, so files appear complete: they are written under a temporary name and renamed. A binary
// that is running (a pod is being wired) stays unchanged until it ends. The configuration list is written last, when the agent is ready: it
// makes a node Ready. Later the list stays: CNI STATUS reports whether pods can be served; runtimes send it with configuration version 1.1.0,
// and select the version that they support from cniVersions.
//
// Nothing is removed when the vswitch's pod ends, since the next pod starts soon and pods must be deletable in between. Remove is for a
// permanent removal.
package cniinstall
