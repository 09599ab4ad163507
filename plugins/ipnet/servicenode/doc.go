// Package servicenode describes this node to the service renderers for VPP: ipnet fills in the records, and the renderers read them, without
// knowledge of ipnet itself. The routes that a service's addresses need beside its translation follow from the records: VPP rejects what no
// port of an address serves, and the host sends what is for the address to VPP.
package servicenode
