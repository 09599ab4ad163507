// Package ipaddr has functions on IP addresses that net/netip does not have.
package ipaddr
