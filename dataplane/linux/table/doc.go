// Package table is the model of packet filtering on Linux that the managers of dataplane/linux speak: chains of rules, sets of
// addresses and dispatch by interface, in both families. Two backends program it, dataplane/linux/iptables and
// dataplane/linux/nft; which one does must make no difference to any packet. The same tests run on both
// (dataplane/linux/tabletest).
//
// The model is richer than iptables (lists of nets and ports in one rule, dispatch by map) and poorer than nftables: what a
// backend cannot say in one rule it says in several.
package table
