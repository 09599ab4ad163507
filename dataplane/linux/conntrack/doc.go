// Package conntrack removes entries of the kernel's table of connections, over ctnetlink, and reads the table for metrics and troubleshooting.
//
// The Linux driver removes entries in these cases:
//   - An address is removed (Delete): the next pod with this address must not continue the connections of the last one.
//   - A backend of a service is removed (DeleteFlows): clients that keep sending must not reach it.
//   - A service is added (DeleteFlows): clients that sent before it was served must be able to reach it.
//   - Network policy has changed (DeleteFlows): the connections that it now denies must end.
package conntrack
