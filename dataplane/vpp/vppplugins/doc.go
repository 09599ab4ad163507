// Package vppplugins lists the VPP plugins that a node loads. VPP has more than eighty, of which many open ports, parse packets or
// allocate memory from the start; a plugin that is not loaded cannot be attacked. It is a separate package so that tests start VPP with
// the same plugins.
package vppplugins
