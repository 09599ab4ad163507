// Package owners decides which service owns a frontend (an address, port and protocol, or a node port) that several services name. It is
// pure: a table that receives added, changed and deleted services, and returns the services that are affected by each change. The cost
// depends on the change and on the services that name the same frontends, and not on the number of services; the result does not depend on
// the order of changes.
//
// The rules (docs/adr/0016):
//
//  1. A cluster IP, with all ports, belongs to the service to which the API server assigned it: no other service can have it as
//     an external address, on any port.
//  2. A node port, at the addresses of all nodes, belongs to the service to which the API server assigned it: no other service
//     can have it by naming a node's address as an external one.
//  3. An external address that is reserved (Rules.Reserved) has no owner: ports that nodes themselves need, the API server,
//     networks of pods.
//  4. Of several services the oldest one owns a frontend: by creation time, then by UID, then by namespace and name.
package owners
