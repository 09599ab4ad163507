// Package nettest creates network namespaces for the tests of the Linux driver's netlink packages.
package nettest
