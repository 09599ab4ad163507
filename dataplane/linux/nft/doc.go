// Package nft programs the kernel's nf_tables. It uses netlink directly, without the nft tool and without a library. An Apply is one
// transaction over sets, maps, chains and rules: packets see all of its changes at once or none, and the kernel acknowledges it once.
//
//	wire      netlink messages, transactions, listings and expressions
//	policy    a table.Backend: chains, rules and sets in the tables contiv
//	services  services, in the tables contiv-services
//	forward   rules in the chain FORWARD of iptables-nft, by which packets of pods pass
//
// policy, services and forward use wire and do not depend on each other: none makes the kernel check another one's tables again when rules change.
// They may share the sockets: a large transaction takes the kernel a third longer if it has to notify any listener, even ourselves.
//
// A transaction names the generation of the kernel's rules that it is based on, so that it never applies to other objects than those it was
// made for. Every rule has a hash of its contents in its user data, so that after a restart the driver finds that nothing has to be written.
// The owner flag of tables is not used, because the rules must persist when the process ends.
package nft
