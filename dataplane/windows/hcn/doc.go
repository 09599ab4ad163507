// Package hcn has the API of version 2 of Windows' Host Network Service, the Host Compute Network: networks and their policies (remote
// subnets, host routes), endpoints with DNS, routes and policies (outbound NAT, access control lists), namespaces, load balancers and routes
// between endpoints.
//
// Service is the real service, by github.com/Microsoft/hcsshim/hcn; on systems other than Windows it is a dummy that compiles. Package hnsmem
// has an implementation in memory for every system. A package that uses some of its methods declares an interface of them
// (windataplane.RemoteSubnets, wiring.HCN). The types have the names and the JSON of the service, so the real one only converts.
//
// A call may take seconds and cannot be cancelled (see package hnscall). All methods may be called from any goroutine. Results belong to the
// caller. A call for an object that does not exist returns ErrNotFound, one for an object that exists already ErrExists.
package hcn
