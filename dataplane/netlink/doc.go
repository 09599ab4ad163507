// Package netlink provides the netlink socket for all code that programs the Linux kernel. Requests are pipelined: many are sent in one call,
// and only the last one requests an acknowledgement. The kernel processes them in order and returns an error for each one that fails. So a
// batch costs two system calls, and each failed request is found by its sequence number.
//
// The messages for links, addresses and neighbours are also here, since several packages need them. A Watch follows the links and addresses of
// a namespace.
package netlink
