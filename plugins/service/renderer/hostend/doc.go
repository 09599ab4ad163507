// Package hostend renders, for the families of addresses that VPP's cnat serves, what the host's own stack has to do for
// services: hand what it gets for node ports at its own addresses to VPP, and not answer itself past VPP when it is client and
// backend at once. dataplane/hostports says how; NAT44 needs only the former, and its renderer sees to that.
//
// What the host does for addresses with source ranges (Places) comes from renderer/cnat itself, which knows whose a place is.
//
// It puts nothing into the event's transaction: the host is told at once.
package hostend
