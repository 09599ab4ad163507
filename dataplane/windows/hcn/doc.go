// Package hcn is version 2 of Windows' Host Network Service, the Host Compute Network API: networks and their policies (remote
// subnets, host routes), endpoints with DNS, routes and policies (outbound NAT, access control lists), namespaces,
// load balancers and routes between endpoints.
//
// API is what a caller sees. Open gives the real one, by github.com/Microsoft/hcsshim/hcn, on Windows only; package hnsmem has one
// in memory for every system. The types have the names and the JSON of the service, so the real one only converts.
package hcn
