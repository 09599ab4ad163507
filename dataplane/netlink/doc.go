// Package netlink is the Linux driver's netlink socket. Requests are pipelined: many go out in one send, only the last of which asks to be
// acknowledged. The kernel works them off in order and sends an error for each one that fails, so that a batch costs two system calls and
// still says which of its requests failed, by sequence number.
//
// What the rest of the driver needs to read and write links, addresses and neighbours is here too, since more than one of its packages
// does.
package netlink
