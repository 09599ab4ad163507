// Package services programs services by the kernel's nf_tables, in tables of their own: `ip contiv-services` and `ip6 contiv-services`.
// Almost everything in them is an element of a map, so that a change of endpoints writes elements and no rules.
//
//	services.go  what the caller sees
//	wants.go     what services need, by family; sets.go: the maps and their elements
//	rules.go, pick.go, expr.go
//	             the chains, which draw a backend
//	load.go      what the kernel has; write.go: what differs
//	probe.go     whether the kernel has all that is needed
package services
