// Package wiring programs Windows' Host Network Service with the objects that connect pods: the node's network, the pods' endpoints, the
// node's own routes to other nodes, and load balancers for services. They have descriptors in the scheduler (Register): desired state arrives as
// northbound values (dataplane/nb/windows/hns, and the driver's services), the differences become calls, and a resync without changes makes no
// call that writes. Policies, and an overlay's routes, are programmed by the driver (package windataplane).
//
// All objects are identified by data in HNS: the network by its name, endpoints by their network and the prefix of their names, load balancers
// by their endpoints, routes by their metric. A load balancer without endpoints has no data about its owner, so the IDs of ours are stored in
// a file (Record), which is written to the disk before a load balancer is made. While the file cannot be written, no load balancer is made.
//
// A pod's endpoint is created closed: the driver opens it. Each call has a timeout (package hnscall): operations that depend on a call that
// hangs fail, and are retried after HNS has been read again. If HNS rejects a part of one service, only that service has an error.
//
// Load balancers are computed by pure functions (lb.go); README.md of plugins/service lists what HNS lacks.
package wiring
