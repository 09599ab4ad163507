// Package transport says what a way of connecting nodes has to answer. There is one package for each way (vxlan, nooverlay), which renders
// it for each kind of dataplane; ipnet picks one by nodeToNodeTransport and treats them alike.
//
// Rendering is pure: what a node needs follows from what is known of it and of its peers.
package transport
