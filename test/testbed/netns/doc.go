// Package netns makes network namespaces that represent hosts and pods in tests. It runs programs and opens sockets in them, and pings from one
// to another. It imports no large part of the product, so that the tests of a single package link fast. Package testbed makes whole nodes from it.
package netns
