// Package rulestest provides a table.Backend in memory that tests use in place of the kernel. Fake stores what it received, rejects what
// the kernel would reject (a jump to a missing chain, a set of the wrong type, names that are too long), injects faults, counts writes, and
// computes what happens to a packet. An unknown match or action is an error.
package rulestest
