// Package hcn is version 2 of Windows' Host Network Service, the Host Compute Network API: networks and their policies (remote
// subnets, host routes), endpoints with DNS, routes and policies (outbound NAT, access control lists), namespaces,
// load balancers and routes between endpoints.
//
// Service is the real one, by github.com/Microsoft/hcsshim/hcn; on other systems than Windows it is a dummy that compiles. Package hnsmem
// has one in memory for every system. A package that uses some of its methods declares an interface of them (windataplane.RemoteSubnets,
// wiring.HCN). The types have the names and the JSON of the service, so the real one only converts.
//
// A call may take seconds and cannot be ended (see package hnscall). All methods may be called from any goroutine. What they return is
// the caller's. An object that is not there gives ErrNotFound, one that is there already ErrExists.
package hcn
