// Package contiv has the descriptors of our own VPP plugin (dataplane/vpp/plugin): endpoints, networks, services, frontends, source
// ranges, IP sets and policies. Plugin reports whether VPP has the plugin. Package traffic reads what the plugin reports
// about packets.
package contiv
