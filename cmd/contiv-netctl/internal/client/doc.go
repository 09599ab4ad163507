// Package client reaches the agents of all nodes. The local one is asked by its root-only unix socket; it reports which nodes there are, at
// which addresses, and with which token and certificate their agents are reached (files on this node: all agents are configured alike).
// Flags replace any of that.
//
// An agent's certificate has to be good for the node's name, for the address that was dialled or for "contiv-agent", so that one
// certificate can serve a whole DaemonSet.
package client
