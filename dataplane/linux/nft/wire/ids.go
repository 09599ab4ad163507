package wire

import (
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Types of keys as nft numbers them. The kernel only hands them on, for nft to know how to show elements.
const (
	typeIPv4  = 7
	typeIPv6  = 8
	TypeProto = 12
	TypePort  = 13
	TypeMark  = 19 // a number as nft shows it
	TypeIface = 41
	TypeBits  = 6 // a concatenation is the types of its fields, each in so many bits
)

// Verdict codes: struct nft_verdict.
const (
	CodeDrop   = 0
	CodeAccept = 1
)

// TypeVerdict is the type of what a map of verdicts holds.
const TypeVerdict = 0xffffff00 // NFT_DATA_VERDICT

// CTBits are the kernel's bits for states.
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

// Family is what nf_tables has for a family of addresses.
type Family struct {
	ID              table.Family
	Proto           uint8 // NFPROTO_…
	AddrType        uint32
	PortUnreachable uint8 // of ICMP
}

// FamilyOf is what nf_tables has for this family.
func FamilyOf(id table.Family) Family {
	if id == table.IPv6 {
		return Family{ID: id, Proto: unix.NFPROTO_IPV6, AddrType: typeIPv6, PortUnreachable: 4}
	}
	return Family{ID: id, Proto: unix.NFPROTO_IPV4, AddrType: typeIPv4, PortUnreachable: 3}
}
