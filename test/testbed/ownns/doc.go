// Package ownns gives the tests of a package a network their own namespace. Tests that make devices, or let an agent or VPP look at all
// devices that there are, would otherwise meet those of other packages, whose tests run at the same time, and of others that use the
// machine.
package ownns
