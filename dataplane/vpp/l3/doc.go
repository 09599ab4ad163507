// Package l3 has the descriptors of tables (VRFs), routes, neighbours, the ageing of neighbours, and proxy
// ARP.
package l3
