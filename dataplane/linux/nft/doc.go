// Package nft programs the kernel's nf_tables. It speaks netlink itself, without the nft tool and without a library: what an Apply changes
// is one transaction over sets, maps, chains and rules, which packets see all at once or not at all, and which the kernel acknowledges
// once.
//
//	wire      netlink messages, transactions, listings and expressions
//	policy    a table.Backend: chains, rules and sets in the tables contiv
//	services  services, in the tables contiv-services
//
// policy and services stand on wire and have nothing of each other: so neither makes the kernel look at the other's tables again when
// rules change. They may share the sockets: the kernel takes a third longer for a large transaction of which it has to inform any
// listener, even ourselves.
//
// A transaction says for which generation of the kernel's rules it is, so that it never meets other objects than those it was made for.
// Every rule carries a hash of what it does in its user data: that is how a restart finds that nothing has to be written. The owner flag
// of tables is not used, because the rules have to survive the process.
package nft
