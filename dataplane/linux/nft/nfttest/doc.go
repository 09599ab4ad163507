// Package nfttest provides what the tests of nf_tables' policy and services share: services, random prefixes, and a node under a flood of
// connections.
package nfttest
