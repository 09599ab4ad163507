// Package intdataplane is the in-process Linux dataplane driver: it takes the messages of dataplane/proto (IP sets, policies,
// endpoints, pools, routes to other nodes, tunnel ends, services) and makes the kernel do what they say, with nftables or with iptables
// and ipsets. It is the dataplane of a machine without VPP.
//
// # Phases
//
// The driver is organised around one loop (dataplane/driver). In the first phase each message goes to all managers, in the
// order of their registration; they only take notes. In the second phase, which the loop holds back until the datastore has
// said InSync and the interfaces are known, and then throttles, every manager completes its work and the result is written, in
// an order that leaves no hole:
//
//	rules and sets (table.Backend; nftables: one transaction) → services → interfaces' parameters → routes → tunnels → status
//
// So a workload's route, without which it gets no packet, comes after its policy, and its status "up" after both. An interface
// that looks like a workload's and has no endpoint is cut off from the first apply on.
//
// # Managers
//
// Per family, in this order: IP sets, this node's addresses, policies, endpoints, floating IPs, masquerading, the nodes'
// addresses, routes to nodes; then one for the VXLAN device and one for services (package balance is their model, nft.Services
// and servicechains.go program them, docs/adr/0011). They know the programming layer as small interfaces (sinks.go), so
// that their tests run on rulestest.Fake.
//
// # Faults
//
// Nothing panics. What cannot be programmed is isolated and blocks: an IP set over its limit closes the rules that need it, an
// endpoint whose chains the kernel refuses is cut off and has the status "error", and all others go on. A configuration that
// makes no sense gives a driver that is neither live nor ready, and whose SendMessage says why.
//
// # Restart
//
// Stop leaves the kernel as it is, and so does a crash: filtering and forwarding go on. The next driver finds out what is there
// and writes only what differs. Uninstall removes all that is ours.
//
// # Requirements on the sender
//
// An object is announced before what refers to it, and removed after it. The driver survives the opposite (what refers to an
// unknown policy or set blocks), but endpoints then have the status "error" meanwhile.
//
// # Example
//
// examples/linuxdriver, a module of its own, drives it by messages, with a manager that reaches IP sets and chains.
package intdataplane
