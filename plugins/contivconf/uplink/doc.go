// Package uplink picks the NIC that connects a node with the others, as contiv.conf's section mainVPPInterface says. The agent,
// pre-flight and tests all pick by it.
package uplink
