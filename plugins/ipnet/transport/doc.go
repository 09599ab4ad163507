// Package transport defines the interface of a way to connect nodes. There is one package for each way (vxlan, nooverlay), which renders it
// for each kind of dataplane. ipnet selects one by nodeToNodeTransport and uses all in the same way.
//
// Rendering is pure: the values of a node follow from its own data and the data of its peers.
package transport
