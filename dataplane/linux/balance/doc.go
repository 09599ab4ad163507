// Package balance is the model of services on the Linux dataplane: what a message of the intent bus says, checked and in the terms of
// packets. Two programmers make the kernel do it, nft.Services (maps in their own table) and chains of iptables (servicechains.go of the
// driver); which one does must make no difference to any packet.
//
// A packet to a frontend (address, protocol, port) goes to a backend of a group: that of Inside if its sender is a pod or the node itself,
// else that of Outside. What the backend sees as the sender depends on the frontend's Masquerade. A group without backends drops or
// rejects.
package balance
