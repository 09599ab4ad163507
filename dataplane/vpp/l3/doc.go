// Package l3 has the descriptors of tables (VRFs), routes, neighbours, their ageing, and proxy ARP.
package l3
