// Package conntrack removes entries of the kernel's connection table by address, over ctnetlink. The Linux driver uses it in three cases:
// an address is removed, so that its next owner's connections do not continue those of the last owner; a backend of a service is removed,
// so that packets of clients that keep sending do not go there; a service is added, so that clients that connected too early can reach it.
package conntrack
