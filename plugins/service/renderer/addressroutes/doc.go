// Package addressroutes makes the routes that a service's addresses need beside its translation. The renderers for VPP (vppsvc, nat44) share
// them: VPP rejects what no port of an address serves, and the host sends what is for the address to VPP.
package addressroutes
