// Package nat44 has the descriptors of VPP's NAT44: global settings, interfaces, address pools, and mappings with backends, by which a VPP
// without our plugin serves IPv4 services (docs/adr/0009). Users and Sessions count its users.
package nat44
