// Package cniinstall puts the CNI plugin where the container runtime looks for it: binaries in /opt/cni/bin, one configuration list in
// /etc/cni/net.d. It is used by cmd/contiv-init.
//
// Both directories are read by the runtime at any time, so files appear whole: they are written beside their place and renamed. A binary
// that runs just now (a pod is being wired) stays what it is until it ends. The configuration list comes last, when the agent is ready: it
// is what makes a node Ready. Later on the list stays: CNI STATUS reports whether pods can be served, which runtimes ask with configuration
// version 1.1.0; they take the version that they know from cniVersions.
//
// Nothing is removed when the vswitch's pod ends, since the next one is about to come and pods must be deleted in between. Remove is for
// good.
package cniinstall
