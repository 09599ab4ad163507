// Package lb is the model of services on the Linux dataplane: the content of a BalancedServiceUpdate (dataplane/proto) after validation, as
// frontends and backends of packets. Two backends write it to the kernel: nft/services (maps in separate tables) and chains of iptables
// (servicechains.go of the driver). Both must have the same effect on every packet.
//
// A packet to a frontend (address, protocol, port) goes to a backend of a group: to the group Inside if its sender is a pod or the node
// itself, otherwise to Outside. The sender that the backend sees depends on the frontend's Masquerade. A group without backends drops or
// rejects.
package lb
