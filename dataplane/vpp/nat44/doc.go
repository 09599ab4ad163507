// Package nat44 has the descriptors of VPP's NAT44: global settings, interfaces, address pools, and mappings with backends. A VPP without
// our plugin serves IPv4 services with these mappings (docs/adr/0009). Users counts NAT sessions by user, and Sessions all of them.
package nat44
