// Package nodeinfo describes this node to the service renderers for VPP: ipnet fills in the records, and the renderers read them, without
// knowledge of ipnet itself. It also computes the routes that the addresses of services need: VPP rejects packets to ports of the address
// that no service has, and the host routes packets for the address to VPP.
package nodeinfo
