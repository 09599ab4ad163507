// Package idallocation contains the stored form of pools and allocations (package idalloc), generated from idallocation.proto.
package idallocation
