// Package kit has the code that the descriptors of all VPP objects share: requests that end an operation and name their object
// in errors, tags that mark an object as ours, conversions between northbound and VPP's types, and the collection of the faults
// of a value. The packages beside it (iface, l2, l3, acl, nat44, contiv) have the descriptors, one package per feature of VPP.
package kit
