// Package vppplugins says which of VPP's plugins a node loads. VPP has more than eighty, of which many open ports, parse packets
// or take memory from the start; what is not loaded cannot be attacked. It is a package of its own so that tests start VPP with the same
// plugins.
package vppplugins
