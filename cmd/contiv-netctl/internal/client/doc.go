// Package client connects to the agents of all nodes. The local agent is queried through its unix socket, which only root can open. It reports
// the nodes, their addresses, and the token and certificate of their agents (files on this node: all agents are configured alike). Flags
// override each of these.
//
// An agent's certificate must be valid for the node's name, for the address that was dialled or for "contiv-agent", so that one certificate
// can serve a whole DaemonSet.
package client
