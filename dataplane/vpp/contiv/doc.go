// Package contiv has the descriptors of our own VPP plugin (dataplane/vpp/plugin): endpoints, networks, services, frontends, source
// ranges, IP sets and policies. Plugin finds out whether VPP has it, and Denied reads what network policy has denied.
package contiv
