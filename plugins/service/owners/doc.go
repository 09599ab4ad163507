// Package owners decides which service has a frontend (an address, port and protocol, or a node port) that several services name. It is
// pure: a table that is informed of services as they come, change and go, and says of which services something has changed by that. What it
// costs depends on the change and on the services that name the same frontends, and not on how many services there are; the result does not
// depend on the order of changes.
//
// The rules (docs/adr/0016):
//
//  1. A cluster IP is the service's that the API server gave it to, with all ports: no other service has it as an external
//     address, whatever the port.
//  2. A node port is the service's that the API server gave it to, at the addresses of all nodes: no other service has it by
//     naming a node's address as an external one.
//  3. An external address that is reserved (Rules.Reserved) is without an owner: ports that nodes need themselves, the API server,
//     networks of pods.
//  4. Of several services the oldest one has a frontend: by creation, then by UID, then by namespace and name.
package owners
