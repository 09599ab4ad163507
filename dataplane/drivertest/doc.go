// Package drivertest holds the tests that every dataplane driver must pass. They use only messages and packets: the matrix of rules and
// packets, tiers and profiles, unknown or invalid objects that must block traffic, changes of sets and policies, and that the state does not
// depend on the order of changes. The Linux and the Windows driver run the tests, each on its own in-memory packet filter.
package drivertest
