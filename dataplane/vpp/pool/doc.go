// Package pool keeps VETH pairs ready, with VPP attached, so that adding a pod with VETH only has to name, move and address its interface.
//
// While VPP attaches to a pair, which takes 35 to 70 ms, its main thread does nothing else. So the pool makes pairs ahead, one at a time, when there
// is no other work: never while a transaction runs or shortly after a pair was taken, and never so fast that VPP is busy with it for more than a fifth
// of the time. An ADD may have to wait at most for the one interface that is just being made. TAPs have no pool: VPP makes one in the pod's namespace
// in less time than a move takes (docs/adr/0005).
//
// VPP's interface on the host end of a pair is an af_packet interface. In the pool it has a tag that marks it and describes its rings. No other
// component touches it until it is claimed: then the claimer sets its own tag. After a restart of the agent the pool finds its interfaces by their
// tags; after a restart of VPP it makes them again, on the pairs that are left. Another package makes the pairs (Veths).
package pool
