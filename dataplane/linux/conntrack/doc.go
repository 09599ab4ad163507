// Package conntrack removes entries of the kernel's connection table by address, over ctnetlink. The Linux driver uses it when
// an address goes away, so that connections of the address's next owner do not continue those of the last, and when a
// backend of a service goes, so that clients that go on sending do not go on sending there, or a service comes, so that clients
// that were too early are not kept from it.
package conntrack
