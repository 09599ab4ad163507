package services

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// mapID identifies one of the sets and maps of a table of services.
type mapID uint8

const (
	mapPods mapID = iota
	mapFrontends
	mapOutside
	mapCounts
	mapPick
	mapPickOutside
	mapSticky
	mapAffinity
	mapHairpin
	mapClusterIPs
	mapReject
	mapDrop
	mapRejectOutside
	mapDropOutside
	mapSources
	mapBackends // the first of several
	numMaps     = mapBackends + shards
)

// shards is the number of maps that the backends are distributed over, by the numbers of their groups. The kernel's time to list a map
// grows with the square of its size (250,000 elements: 7 s), because it counts elements to find the position to continue from.
const shards = 4

func shardOf(group uint64) uint32 { return uint32(group % shards) }

// mapDef holds the parameters of a set or map for the kernel.
type mapDef struct {
	id                               mapID
	name                             string
	flags, keyType, keyLen, dataType uint32
	dataLen, maxSize                 uint32
}

const (
	// maxAffinity limits the number of clients with a recorded backend in a family; further clients are served without affinity.
	maxAffinity = 1 << 20
)

func concat(types ...uint32) (t uint32) {
	for _, one := range types {
		t = t<<wire.TypeBits | one
	}
	return t
}

// mapDefs returns all sets and maps of a family.
func mapDefs(f wire.Family) []mapDef {
	a, addr := uint32(wire.AddressBytes(f.ID)), f.AddrType
	front, frontLen := concat(addr, wire.TypeProto, wire.TypePort), a+8
	group, number3 := concat(wire.TypeMark, wire.TypeMark), concat(wire.TypeMark, wire.TypeMark, wire.TypeMark)
	defs := []mapDef{
		{id: mapPods, name: "pods", flags: unix.NFT_SET_INTERVAL, keyType: addr, keyLen: a},
		{id: mapFrontends, name: "frontends", keyType: front, keyLen: frontLen, dataType: number3, dataLen: 12},
		{id: mapOutside, name: "outside", keyType: front, keyLen: frontLen, dataType: number3, dataLen: 12},
		{id: mapCounts, name: "counts", keyType: group, keyLen: 8, dataType: number3, dataLen: 12},
		{id: mapPick, name: "pick", keyType: group, keyLen: 8, dataType: wire.TypeVerdict},
		{id: mapPickOutside, name: "pick-outside", keyType: group, keyLen: 8, dataType: wire.TypeVerdict},
		{id: mapSticky, name: "sticky", keyType: concat(wire.TypeMark, wire.TypeMark, addr, wire.TypePort), keyLen: 12 + a},
		{id: mapAffinity, name: "affinity", flags: unix.NFT_SET_TIMEOUT | unix.NFT_SET_EVAL, maxSize: maxAffinity,
			keyType: concat(wire.TypeMark, wire.TypeMark, addr), keyLen: a + 8, dataType: concat(addr, wire.TypePort), dataLen: a + 4},
		{id: mapHairpin, name: "hairpin", keyType: concat(addr, addr), keyLen: 2 * a},
		{id: mapClusterIPs, name: "cluster-ips", keyType: addr, keyLen: a},
		{id: mapReject, name: "refused", keyType: front, keyLen: frontLen},
		{id: mapDrop, name: "dropped", keyType: front, keyLen: frontLen},
		{id: mapRejectOutside, name: "refused-outside", keyType: front, keyLen: frontLen},
		{id: mapDropOutside, name: "dropped-outside", keyType: front, keyLen: frontLen},
		{id: mapSources, name: "sources", keyType: front, keyLen: frontLen, dataType: wire.TypeVerdict},
	}
	for i := range mapID(shards) { // with a type that nft can show: the first two backends of each block
		defs = append(defs, mapDef{id: mapBackends + i, name: fmt.Sprintf("backends-%d", i), keyType: number3, keyLen: 12,
			dataType: concat(addr, wire.TypePort, addr, wire.TypePort), dataLen: uint32(slotsOf(f.ID)) * (a + 4)})
	}
	for i := range defs {
		if defs[i].dataType != 0 {
			defs[i].flags |= unix.NFT_SET_MAP
		}
	}
	return defs
}

// Keys and values in the kernel's format: every field begins at a multiple of four bytes. Our own numbers are in host byte order, as numgen
// generates them.

func frontKey(k lb.Key) string {
	b := append(k.Addr.AsSlice(), k.Proto, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, k.Port)
	return string(append(b, 0, 0))
}

func appendGroup(b []byte, id uint64) []byte { return binary.BigEndian.AppendUint64(b, id) }

func groupKey(id uint64) string { return string(appendGroup(nil, id)) }

func frontValue(g *lb.Group, m lb.Masquerade) string {
	return string(appendGroup(wire.Host32(uint32(m)), g.ID))
}

func countValue(p picker) string { return string(wire.Host32(0)) + pickKey(p) }

func appendBlockKey(b []byte, id uint64, block int) []byte {
	return binary.NativeEndian.AppendUint32(appendGroup(b, id), uint32(block))
}

func appendBackend(b []byte, g *lb.Group, i int) []byte {
	b = append(b, g.AddrBytes(i)...)
	b = binary.BigEndian.AppendUint16(b, g.Port(i))
	return append(b, 0, 0)
}

// addrRegs returns the number of 32-bit registers of an address.
func addrRegs(f table.Family) uint32 { return uint32(wire.AddressBytes(f)) / 4 }
