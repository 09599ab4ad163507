// Package uplink selects the NIC that connects a node with the others, according to contiv.conf's section mainVPPInterface. The agent,
// pre-flight and tests use it.
package uplink
