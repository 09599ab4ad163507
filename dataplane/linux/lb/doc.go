// Package lb is the model of services on the Linux dataplane: the validated content of a message of the intent bus, in terms of
// packets. Two programmers write it to the kernel: nft.Services (maps in a table of its own) and chains of iptables (servicechains.go of
// the driver). Both must treat every packet in the same way.
//
// A packet to a frontend (address, protocol, port) goes to a backend of a group: to the group Inside if its sender is a pod or the node
// itself, otherwise to Outside. The sender that the backend sees depends on the frontend's Masquerade. A group without backends drops or
// rejects.
package lb
