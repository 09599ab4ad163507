// Package nooverlay connects nodes without tunnels: each node's networks are routed via its address in the network that
// connects nodes, which therefore must be one layer-2 network.
package nooverlay
