// Package tunnel maintains the tunnel devices of the Linux driver: a VXLAN device with its forwarding entries and neighbours, and the
// kernel's IPIP device. It uses netlink only.
package tunnel
