// Package hns has the part of version 1 of Windows' Host Network Service (HNS) that the Windows dataplane driver needs: the list of endpoints,
// and the access control list of an endpoint.
//
// Callers use API. Open returns the real service, by github.com/Microsoft/hcsshim, on Windows only; package hnsmem has an implementation in
// memory for every system. Version 2 of the service (networks, load balancers, routes, namespaces) is in package hcn. Both versions show the
// same objects with the same IDs.
//
// Addresses and ports are typed here and texts in HNS. Encode and Decode convert between them on every system, so that the data for Windows is
// tested everywhere.
package hns
