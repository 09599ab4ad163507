// Package wiring makes Windows' Host Network Service have what connects pods: the node's network, the pods' endpoints, the node's own
// routes to other nodes, and load balancers for services. They are kinds of the scheduler (Register): desired state comes in as
// northbound values (dataplane/nb/windows/hns, and the driver's services), the differences go out as calls, and a resync with nothing
// changed makes none that writes. Policies, and an overlay's routes, are the driver's (package windataplane).
//
// All objects are found by what HNS has: the network by its name, endpoints by their network and the prefix of their names, load balancers by the
// endpoints that they lead to, routes by their metric. A load balancer that leads to nothing says nothing of its owner, so the IDs of ours are
// kept in a file (Record), which is on the disk before a load balancer is made. While it cannot be written, no load balancer is made.
//
// A pod's endpoint is made closed: the driver opens it. Each call has a limit (package hnscall): what depends on one that hangs fails, and
// is tried again after a look at HNS. What HNS refuses of one service is that service's error.
//
// Load balancers are worked out by pure functions (balance.go); README.md of plugins/service has what HNS lacks.
package wiring
