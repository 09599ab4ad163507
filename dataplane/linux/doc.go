// Package intdataplane is the in-process Linux dataplane driver: it takes the messages of dataplane/proto (IP sets, policies, endpoints,
// pools, routes to other nodes, tunnel ends, services) and programs the kernel accordingly, with nftables or with iptables and ipsets. It
// is the dataplane of a machine without VPP. The package has the name of Felix's package with the same API (intdataplane, Felix's
// dataplane/linux), so programs written for Felix find the same identifiers.
//
// # Phases
//
// The driver is organised around one loop (dataplane/driver). In the first phase each message goes to all managers, in the order of their
// registration; a manager only records it. In the second phase every manager completes its work and the result is written, in an order that
// never lets unfiltered packets through. The loop starts the second phase only after the message InSync and after all interfaces were
// listed, and throttles it from then on:
//
//	rules and sets (table.Backend; nftables: one transaction) → services → interfaces' parameters → routes → tunnels → status
//
// So a workload's route, without which it receives no packet, is written after its policy, and its status "up" is reported after both. An
// interface that has the name of a workload's interface but has no endpoint is blocked from the first apply on.
//
// # Managers
//
// Per family, in this order: IP sets, this node's addresses, policies, endpoints, floating IPs, masquerading, the nodes' addresses, routes
// to nodes; then one for the VXLAN device and one for services (package lb models services; nft.Services and servicechains.go program
// them, docs/adr/0011). They use the programming layer through small interfaces (sinks.go), so that their tests run on rulestest.Fake.
//
// # Faults
//
// Nothing panics. An object that cannot be programmed is isolated and blocks traffic: rules that need an IP set over its limit block, and
// an endpoint whose chains the kernel rejects is blocked and has the status "error". All other objects keep working. With an invalid
// configuration the driver is neither live nor ready, and SendMessage returns the reason.
//
// # Restart
//
// Stop leaves the kernel's state unchanged, and so does a crash: filtering and forwarding continue. The next driver reads the kernel's
// state and writes only the differences. Uninstall removes all objects of this driver.
//
// # Requirements on the sender
//
// The sender announces an object before the objects that refer to it, and removes it after them. The driver tolerates the opposite order
// (an object that refers to an unknown policy or set blocks traffic), but endpoints have the status "error" meanwhile.
//
// # Example
//
// examples/linuxdriver, a separate module, sends messages to the driver and adds a manager that writes IP sets and chains.
package intdataplane
