// Package drivertest is what every dataplane driver must do, as tests that know drivers by messages and packets only: the matrix of
// rules and packets, tiers and profiles, what blocks because it is not known or makes no sense, changes of sets and policies, and
// that the way to a state does not count. The Linux and the Windows driver run it, each on its own packet filter in memory.
package drivertest
