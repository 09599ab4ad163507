package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// Sizes of a registry hive: a header, then bins of cells. An empty hive has one bin.
const (
	hiveHeader    = 4096
	hiveBin       = 4096
	hiveBinHeader = 32
	noCell        = 0xffffffff
)

// emptyHive returns a file of the Windows registry whose root key is empty. Windows checks that the base layer of an image has such files before
// it unpacks the image.
func emptyHive(root string) ([]byte, error) {
	key := hiveBinHeader
	security := key + len(hiveKey(root, 0))
	cells := slices.Concat(hiveKey(root, uint32(security)), hiveSecurity(uint32(security)))
	free := hiveBin - hiveBinHeader - len(cells)
	if free < 8 {
		return nil, fmt.Errorf("name %q of a registry hive: too long", root)
	}

	bin := fields("hbin", uint32(0), uint32(hiveBin), uint64(0), uint64(0), uint32(0))
	bin = append(bin, cells...)
	bin = append(bin, fields(int32(free))...) // a positive size: the cell is free
	bin = append(bin, make([]byte, hiveBin-len(bin))...)

	header := fields("regf", uint32(1), uint32(1), uint64(0), // sequence numbers and time of the last write
		uint32(1), uint32(3), uint32(0), uint32(1), // version 1.3, primary file, loaded directly
		uint32(key), uint32(hiveBin), uint32(1))
	const checksumAt = 508
	header = append(header, make([]byte, hiveHeader-len(header))...)
	var sum uint32
	for i := 0; i < checksumAt; i += 4 {
		sum ^= binary.LittleEndian.Uint32(header[i:])
	}
	binary.LittleEndian.PutUint32(header[checksumAt:], sum)
	return append(header, bin...), nil
}

// hiveKey returns the cell of the root key; security is the cell of its access rights.
func hiveKey(name string, security uint32) []byte {
	const rootKey = 0x4 | 0x8 | 0x20                                                    // root of the hive, cannot be deleted, name in ASCII
	return hiveCell(fields("nk", uint16(rootKey), uint64(0), uint32(0), uint32(noCell), // time, spare, parent
		uint32(0), uint32(0), uint32(noCell), uint32(noCell), // keys below it: none
		uint32(0), uint32(noCell), security, uint32(noCell), // values: none; security; class: none
		uint32(0), uint32(0), uint32(0), uint32(0), uint32(0), // longest names and values below it
		uint16(len(name)), uint16(0), name))
}

// hiveSecurity returns the cell of the access rights of the keys: the system and administrators have full access. at is the position of the cell,
// which is the only one in its list.
func hiveSecurity(at uint32) []byte {
	system := fields([]byte{1, 1, 0, 0, 0, 0, 0, 5}, uint32(18))                      // S-1-5-18
	administrators := fields([]byte{1, 2, 0, 0, 0, 0, 0, 5}, uint32(32), uint32(544)) // S-1-5-32-544
	allow := func(sid []byte) []byte {
		const keyAllAccess = 0xf003f
		return fields([]byte{0, 2}, uint16(8+len(sid)), uint32(keyAllAccess), sid) // inherited by keys below
	}
	entries := append(allow(system), allow(administrators)...)
	list := fields([]byte{2, 0}, uint16(8+len(entries)), uint16(2), uint16(0), entries)
	const owner, selfRelativeWithList = 20, 0x8004
	group := owner + len(administrators)
	descriptor := fields([]byte{1, 0}, uint16(selfRelativeWithList), uint32(owner), uint32(group), uint32(0), uint32(group+len(system)),
		administrators, system, list)
	return hiveCell(fields("sk", uint16(0), at, at, uint32(1), uint32(len(descriptor)), descriptor))
}

// hiveCell returns a cell that is in use: its size is negative, and a multiple of 8.
func hiveCell(data []byte) []byte {
	size := (4 + len(data) + 7) &^ 7
	cell := append(fields(int32(-size)), data...)
	return append(cell, make([]byte, size-len(cell))...)
}

// fields encodes numbers in Windows' byte order; strings and bytes are copied.
func fields(list ...any) []byte {
	var b bytes.Buffer
	for _, v := range list {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
		case []byte:
			b.Write(v)
		default:
			_ = binary.Write(&b, binary.LittleEndian, v) // a write to a buffer does not fail
		}
	}
	return b.Bytes()
}
