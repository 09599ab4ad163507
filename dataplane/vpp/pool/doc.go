// Package pool keeps VPP interfaces ready, so that adding a pod only has to name, move and address an interface.
//
// Making an interface stops VPP's main thread: 2 to 3 ms for a TAP, 30 to 55 ms for an af_packet interface. So the pool makes interfaces
// ahead, one at a time, when there is no other work: never while a transaction runs or shortly after an interface was taken, and never so
// fast that VPP is busy with it for more than a fifth of the time. An ADD may have to wait at most for the one interface that is just being
// made.
//
// An interface of the pool has a tag that marks it and describes its role. No other component touches it until it is claimed: then the
// claimer sets its own tag. After a restart of the agent the pool finds its interfaces by their tags; after a restart of VPP it makes them
// again, on the Linux devices that are left.
//
// A pool has either TAPs, or pairs of veth devices with an af_packet interface on the host end. Another package makes the pairs (Veths).
package pool
