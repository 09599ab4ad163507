// Package hns is the part of version 1 of Windows' Host Network Service (HNS) that the Windows dataplane driver needs: the list
// of endpoints, and the access control list of an endpoint.
//
// API is what a caller sees. Open gives the real one, by github.com/Microsoft/hcsshim, on Windows only; package hnsmem has one in
// memory for every system. Version 2 of the service (networks, load balancers, routes, namespaces) is package hcn. Both versions show the same
// objects with the same IDs.
//
// Addresses and ports are typed here and texts in HNS; Encode and Decode are the way between both, on every system, so that
// what Windows would get is tested everywhere.
package hns
