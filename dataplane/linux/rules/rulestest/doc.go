// Package rulestest has a table.Backend in memory that tests use in place of the kernel: Fake keeps what it received, refuses what the
// kernel would refuse (a jump to a chain that is not there, a set of the wrong type, names that are too long), injects faults, counts
// writes, and says what happens to a packet. A match or an action that it does not know is an error, not a guess.
package rulestest
