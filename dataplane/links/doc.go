// Package links is the Linux half of the dataplane: the scheduler kinds for Linux interfaces, their addresses, routes and neighbours, in
// any network namespace, on rtnetlink.
//
// # How operations run
//
// Kinds only queue; Backend.Flush carries out the queue of the wave, in three classes: deletes, creates, creates that need those (routes
// through a gateway). Queuing is what lets both ends of a VETH pair, two northbound values, become one RTM_NEWLINK which makes each end in
// its namespace with its name, MAC and MTU; moving a link afterwards costs the kernel two RCU grace periods. A namespace is entered once
// per wave, to open a socket inside it; everything else happens through that socket, without setns. Handles are closed when Flush returns,
// so the agent never keeps a dead pod's namespace alive.
//
// # Ownership
//
// Our objects are marked in the kernel, so that a restarted agent needs no stored state:
//
//   - links: the alias "contiv:<logical name>". The end of a VETH pair whose value is not there (yet) waits in the agent's
//     namespace under a generated name, with alias "contiv-peer:<logical name>". Between its creation and its alias a link
//     is known by its group.
//   - routes, neighbours and (from Linux 5.18) addresses: the protocol number of this package.
//
// Links with neither mark are never touched; EXISTING interfaces and the agent's own lo are changed as asked but carry no mark and are
// never removed or taken down.
//
// # Namespaces that are gone
//
// Deleting something in a namespace that has vanished succeeds. Creating something there fails for good (nsdo.ErrGone). A dump shows
// nothing there.
package links
