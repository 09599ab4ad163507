// Package pool keeps VPP interfaces ready, so that adding a pod only has to name, move and address one.
//
// Making an interface stops VPP's main thread: 2 to 3 ms for a TAP, 30 to 55 ms for an af_packet interface. So the pool makes them ahead,
// one at a time, when nothing else is to be done: never while a transaction runs or shortly after an interface was taken, and never so fast
// that VPP is busy with it for more than a fifth of the time. What an ADD may have to wait for is the one interface that is just being
// made.
//
// An interface of the pool has a tag that marks it and names its role. No other component touches it until it is claimed: then the claimer
// sets his own tag. After a restart of the agent the pool finds its interfaces by their tags; after one of VPP it makes them again, on the
// Linux devices that are left.
//
// A pool has either TAPs, or pairs of veth devices with an af_packet interface on the host end. The pairs are made by someone else (Veths).
package pool
