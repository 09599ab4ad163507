// Package nat44 has the descriptors of VPP's NAT44: global settings, interfaces, address pools, and mappings with backends. A VPP without
// our plugin serves IPv4 services with these mappings (docs/adr/0009). Sessions counts all NAT sessions; package traffic counts them
// by user.
package nat44
