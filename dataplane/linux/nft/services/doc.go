// Package services programs services with the kernel's nf_tables, in separate tables: `ip contiv-services` and `ip6 contiv-services`.
// Almost all of their contents are elements of maps, so that a change of endpoints writes elements and no rules.
//
//	services.go  the interface
//	wants.go     the elements that services need, by family; sets.go: the maps and their elements
//	rules.go, pick.go, expr.go
//	             the chains, which select a backend
//	load.go      reads the kernel's state; write.go: writes the differences
//	probe.go     checks whether the kernel has all features that are needed
package services
