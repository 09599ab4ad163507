// Package ownns runs the tests of a package in their own network namespace. Tests that make devices, or let an agent or VPP list all
// devices, would otherwise find those of other packages, whose tests run at the same time, and of other users of the machine.
package ownns
