// Package table is the model of packet filtering on Linux that the managers of dataplane/linux use: chains of rules, sets of addresses and
// dispatch by interface, in both families. Two backends program it, dataplane/linux/iptables and dataplane/linux/nft. Both must treat every
// packet in the same way; the same tests run on both (dataplane/linux/tabletest).
//
// The model is richer than iptables (lists of prefixes and ports in one rule, dispatch by map) and poorer than nftables. A backend may
// translate one rule to several.
package table
