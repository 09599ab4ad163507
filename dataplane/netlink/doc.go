// Package netlink is the netlink socket of all that programs the Linux kernel. Requests are pipelined: many go out in one send, only the last
// of which asks to be acknowledged. The kernel handles them in order and sends an error for each one that fails. So a batch costs two system
// calls, and each request that failed is found by its sequence number.
//
// The messages for links, addresses and neighbours are here too, since several packages need them. A Watch follows the links and addresses
// of a namespace.
package netlink
