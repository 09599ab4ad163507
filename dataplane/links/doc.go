// Package links programs Linux interfaces, with their addresses, routes and neighbours, in any network namespace: the Linux ends of VPP's
// links, and the links of pods without VPP. It has the scheduler's descriptors of these objects, and uses rtnetlink.
//
// # How operations run
//
// Descriptors only queue operations; Backend.Flush carries out the queue of the wave, in three classes: deletes, creates, and creates that depend on
// other creates (routes through a gateway). Because of the queue, both ends of a VETH pair, two northbound values, become one RTM_NEWLINK which
// creates each end in its namespace with its name, MAC and MTU; moving a link afterwards costs the kernel two RCU grace periods. A namespace is
// entered once per wave, to open a socket inside it; all requests use that socket, without setns. Handles are closed when Flush returns, so the
// agent never keeps a dead pod's namespace alive.
//
// # Ownership
//
// Our objects are marked in the kernel, so that a restarted agent needs no stored state:
//
//   - links: the alias "contiv:<logical name>". An end of a VETH pair whose value does not exist (yet) stays in the agent's namespace under a
//     generated name, with alias "contiv-peer:<logical name>". Between its creation and the setting of its alias a link is recognized by its
//     group.
//   - routes, neighbours and (from Linux 5.18) addresses: the protocol number of this package.
//
// Links with neither mark are never changed. EXISTING interfaces and the agent's own lo are changed as requested, but carry no mark and are
// never removed or set down.
//
// # Deleted namespaces
//
// Deleting an object in a namespace that no longer exists succeeds. Creating an object there fails permanently (nsdo.ErrGone). A dump finds no
// objects there.
//
// # Namespaces of pods
//
// A pod with CAP_NET_ADMIN can change everything in its namespace, all the time. Listings there have a limit (podLimit); beyond it, only the objects
// of the agent's own devices are read. What cannot be read counts as absent and is configured again. The
// errors of operations there are of one pod only (scheduler.PodOnly): they do not make the node unready, and are retried as long as the pod exists.
package links
