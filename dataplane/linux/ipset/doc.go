// Package ipset programs the IP sets of the iptables backend (dataplane/linux/iptables). It uses nfnetlink directly: adding a member takes
// microseconds, whereas starting the ipset program takes 15 ms.
//
// # How sets are written
//
// Sets records the desired state; nothing is written before ApplyUpdates. Differences are stored per set as the members that the kernel
// lacks and its surplus members, so the cost of an apply depends on the changes. A message has hundreds of members and is sent without
// waiting for the answers to earlier messages. An apply has two rounds: first all sets are created and members added; then, for the sets
// without errors, members are removed and rebuilt sets are swapped in. A set in which most members change, or whose maximum leaves no room
// for adding before removing, is rebuilt under a temporary name, so packets see either all of the old set or all of the new one.
//
// # Ownership
//
// The names of our sets begin with cv40 or cv60 (the family), those of temporary sets with cv4t or cv6t. At the first apply, and at a
// Resync, the kernel's sets are listed: a set that is as desired is not changed; sets that are not desired are destroyed by ApplyDestroys,
// which runs after the rules are written, since a set that rules refer to cannot be destroyed. The kernel may take tens of milliseconds to
// destroy a set, so ApplyDestroys has a time budget and continues at the next call.
//
// # Failures
//
// A failure concerns only its set: Result.Broken reports it, and the set's earlier content is kept. A set that did not exist is created
// empty, so that rules that refer to it can be loaded. Usable reports whether they can.
package ipset
