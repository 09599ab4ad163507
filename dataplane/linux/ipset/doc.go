// Package ipset keeps the IP sets of the iptables backend (dataplane/linux/iptables) as desired. It speaks nfnetlink to the kernel itself:
// one added member costs microseconds, where starting the ipset program costs 15 ms.
//
// # How sets are written
//
// Sets notes what is desired; nothing is written before ApplyUpdates. Differences are kept per set as the members which the kernel lacks
// and those it has too many, so an apply costs what has changed. Messages carry hundreds of members each and are sent without waiting for
// the answers of those before. Two rounds make an apply: first everything is created and added, then, for the sets where this went well,
// members are removed and rebuilt sets are swapped in. A set that is changed in most of its members, or whose maximum leaves no room for
// adding before removing, is rebuilt under a temporary name, so packets see either all of the old or all of the new.
//
// # Ownership
//
// The names of our sets begin with cv40 or cv60 (the family), temporary ones with cv4t or cv6t. At the first apply, and at a Resync, the
// kernel's sets are listed: a set that is right is not touched; ones that nothing desires are destroyed by ApplyDestroys, which comes after
// the rules, since a set that rules refer to cannot be destroyed. The kernel may take tens of milliseconds to destroy a set, so this has a
// time budget and goes on at the next call.
//
// # What goes wrong with one set
//
// It stays with that set: Result.Broken reports it, and its earlier content is kept. One that did not exist is made empty, so rules that
// refer to it can be loaded. Usable says whether they can.
package ipset
