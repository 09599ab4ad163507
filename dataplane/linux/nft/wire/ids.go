package wire

import (
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Types of keys as nft numbers them. The kernel only stores them, so that nft can show elements.
const (
	typeIPv4  = 7
	typeIPv6  = 8
	TypeProto = 12
	TypePort  = 13
	TypeMark  = 19 // a number, as nft shows it
	TypeIface = 41
	TypeBits  = 6 // bits of each type in a concatenation, which consists of the types of its fields
)

// Verdict codes: struct nft_verdict.
const (
	CodeDrop   = 0
	CodeAccept = 1
)

// TypeVerdict is the data type of maps of verdicts.
const TypeVerdict = 0xffffff00 // NFT_DATA_VERDICT

// CTBits returns the kernel's bits for connection states.
func CTBits(s table.CTState) (bits uint32) {
	for _, b := range []struct {
		state table.CTState
		bit   uint32
	}{{table.CTInvalid, 1}, {table.CTEstablished, 2}, {table.CTRelated, 4}, {table.CTNew, 8}, {table.CTUntracked, 64}} {
		if s&b.state != 0 {
			bits |= b.bit
		}
	}
	return bits
}

// Family holds the constants of nf_tables for an address family.
type Family struct {
	ID              table.Family
	Proto           uint8 // NFPROTO_…
	AddrType        uint32
	PortUnreachable uint8 // of ICMP or ICMPv6
}

// FamilyOf returns the constants of nf_tables for this family.
func FamilyOf(id table.Family) Family {
	if id == table.IPv6 {
		return Family{ID: id, Proto: unix.NFPROTO_IPV6, AddrType: typeIPv6, PortUnreachable: 4}
	}
	return Family{ID: id, Proto: unix.NFPROTO_IPV4, AddrType: typeIPv4, PortUnreachable: 3}
}
