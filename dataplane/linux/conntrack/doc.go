// Package conntrack removes entries of the kernel's connection table by address, over ctnetlink. The Linux driver uses it when
// an address goes away, so that connections of the address's next owner do not continue those of the last.
package conntrack
