package clusterdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
)

// checkBolt reads a whole bbolt file that is not open, and returns an error if it is damaged. A missing or empty file is not damaged.
//
// bbolt checks only its first two pages. It maps the file into memory and trusts the rest: a damaged page makes it panic, read beyond the
// file (a memory fault) or recurse without end, some of this in goroutines of its own, where nothing can recover. Its own check (Tx.Check) has
// the same faults. So checkBolt reads the pages from the file and checks each number before it uses it.
func checkBolt(path string) (err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Size() == 0:
		return nil // bbolt initialises it
	}
	faults := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(faults)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s is damaged: %v", path, r)
		}
	}()
	// This takes the lock, and checks the two meta pages.
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: localLockTimeout})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer db.Close() // nothing was written
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	w := boltWalk{file: file, pageSize: uint64(db.Info().PageSize)}
	if err := w.run(uint64(info.Size())); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// The format of bbolt's pages. Numbers have the byte order of the machine.
const (
	boltHeader   = 16 // of a page: its ID (8 bytes), flags (2), count of elements (2), number of further pages (4)
	boltElement  = 16 // of a leaf or branch page
	boltBucket   = 16 // in front of the inline page in the value of a bucket: root page (8), sequence (8)
	boltBranch   = 0x01
	boltLeaf     = 0x02
	boltFreelist = 0x10
	boltIsBucket = 0x01 // flag of an element of a leaf: the value is a bucket
	boltMagic    = 0xED0CDAED
	boltNoList   = math.MaxUint64 // the list of free pages is not stored
	boltManyFree = 0xFFFF         // the list of free pages has its length as its first element
)

// boltWalk visits the pages of a bbolt file.
type boltWalk struct {
	file     io.ReaderAt
	pageSize uint64
	high     uint64 // the number of pages
	used     []bool // by page: it belongs to a tree or to the list of free pages
}

// boltPage is a page with its further pages, which form one piece.
type boltPage struct {
	id    uint64 // 0: in the value of a bucket
	flags uint16
	count int
	data  []byte
}

func (p *boltPage) fault(format string, args ...any) error {
	return fmt.Errorf("page %d: %s", p.id, fmt.Sprintf(format, args...))
}

func (w *boltWalk) run(size uint64) error {
	root, freelist, err := w.meta()
	if err != nil {
		return err
	}
	if w.pageSize == 0 || w.high > size/w.pageSize {
		return fmt.Errorf("the file has %d bytes instead of %d pages of %d bytes", size, w.high, w.pageSize)
	}
	w.used = make([]bool, w.high)
	if err := w.tree(root, nil, nil); err != nil {
		return err
	}
	if freelist == boltNoList {
		return nil
	}
	return w.freePages(freelist)
}

// meta returns the root page and the page with the list of free pages, from the newer one of the two meta pages that are valid.
func (w *boltWalk) meta() (root, freelist uint64, err error) {
	const length, summed = 64, 56
	found, newest := false, uint64(0)
	for i := range uint64(2) {
		m := make([]byte, length)
		if _, err := w.file.ReadAt(m, int64(i*w.pageSize+boltHeader)); err != nil {
			return 0, 0, fmt.Errorf("meta page %d: %w", i, err)
		}
		h := fnv.New64a()
		_, _ = h.Write(m[:summed])
		number := func(at int) uint64 { return binary.NativeEndian.Uint64(m[at:]) }
		txn := number(48)
		if binary.NativeEndian.Uint32(m) != boltMagic || h.Sum64() != number(summed) || found && txn < newest {
			continue
		}
		found, newest = true, txn
		root, freelist, w.high = number(16), number(32), number(40)
	}
	if !found {
		return 0, 0, errors.New("neither meta page is valid")
	}
	return root, freelist, nil
}

// page reads a page that nothing else uses.
func (w *boltWalk) page(id uint64) (*boltPage, error) {
	if id < 2 || id >= w.high {
		return nil, fmt.Errorf("page %d does not exist", id)
	}
	head := make([]byte, boltHeader)
	if _, err := w.file.ReadAt(head, int64(id*w.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	p := &boltPage{id: id, flags: binary.NativeEndian.Uint16(head[8:]), count: int(binary.NativeEndian.Uint16(head[10:]))}
	if self := binary.NativeEndian.Uint64(head); self != id {
		return nil, p.fault("its header has the number %d", self)
	}
	pages := uint64(binary.NativeEndian.Uint32(head[12:])) + 1
	if pages > w.high-id {
		return nil, p.fault("it has %d pages, which is beyond the end", pages)
	}
	for i := range pages {
		if w.used[id+i] {
			return nil, p.fault("page %d is used twice", id+i)
		}
		w.used[id+i] = true
	}
	p.data = make([]byte, pages*w.pageSize)
	if _, err := w.file.ReadAt(p.data, int64(id*w.pageSize)); err != nil {
		return nil, p.fault("%v", err)
	}
	return p, nil
}

// tree visits a page and all pages below it. The first key must be low, and all keys less than high; nil: no limit.
func (w *boltWalk) tree(id uint64, low, high []byte) error {
	p, err := w.page(id)
	switch {
	case err != nil:
		return err
	case p.flags == boltLeaf:
		return w.leaf(p, low, high)
	case p.flags != boltBranch:
		return p.fault("flags %#x are not those of a tree's page", p.flags)
	case p.count == 0:
		return p.fault("a branch without elements")
	}
	keys, children := make([][]byte, p.count), make([]uint64, p.count)
	for i := range p.count {
		e, err := p.element(i)
		if err != nil {
			return err
		}
		pos, length := binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:])
		children[i] = binary.NativeEndian.Uint64(e[8:])
		if keys[i], err = p.part(i, uint64(pos), uint64(length)); err != nil {
			return err
		}
	}
	if err := p.ordered(keys, low, high); err != nil {
		return err
	}
	for i, child := range children {
		next := high
		if i+1 < len(keys) {
			next = keys[i+1]
		}
		if err := w.tree(child, keys[i], next); err != nil {
			return err
		}
	}
	return nil
}

// leaf visits a leaf page, and the buckets in it.
func (w *boltWalk) leaf(p *boltPage, low, high []byte) error {
	keys, buckets := make([][]byte, p.count), [][]byte(nil)
	for i := range p.count {
		e, err := p.element(i)
		if err != nil {
			return err
		}
		flags, pos := binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:])
		keyLen, valueLen := binary.NativeEndian.Uint32(e[8:]), binary.NativeEndian.Uint32(e[12:])
		pair, err := p.part(i, uint64(pos), uint64(keyLen)+uint64(valueLen))
		if err != nil {
			return err
		}
		keys[i] = pair[:keyLen]
		switch flags {
		case 0:
		case boltIsBucket:
			buckets = append(buckets, pair[keyLen:])
		default:
			return p.fault("element %d has the flags %#x", i, flags)
		}
	}
	if err := p.ordered(keys, low, high); err != nil {
		return err
	}
	for _, value := range buckets {
		if err := w.bucket(p, value); err != nil {
			return err
		}
	}
	return nil
}

// bucket visits a bucket, which has a tree of its own or, if it is small, a leaf in the value itself.
func (w *boltWalk) bucket(in *boltPage, value []byte) error {
	if len(value) < boltBucket {
		return in.fault("a bucket with %d bytes", len(value))
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return w.tree(root, nil, nil)
	}
	data := value[boltBucket:]
	if len(data) < boltHeader {
		return in.fault("a bucket with a page of %d bytes", len(data))
	}
	inline := &boltPage{flags: binary.NativeEndian.Uint16(data[8:]), count: int(binary.NativeEndian.Uint16(data[10:])), data: data}
	if inline.flags != boltLeaf {
		return in.fault("a bucket in a page with the flags %#x", inline.flags)
	}
	if err := w.leaf(inline, nil, nil); err != nil {
		return in.fault("a bucket in it: %v", err)
	}
	return nil
}

// element returns the i-th element of a page.
func (p *boltPage) element(i int) ([]byte, error) {
	from := boltHeader + i*boltElement
	if from+boltElement > len(p.data) {
		return nil, p.fault("it has %d bytes, too few for %d elements", len(p.data), p.count)
	}
	return p.data[from : from+boltElement], nil
}

// part returns a part of the page that begins pos bytes after the begin of the i-th element.
func (p *boltPage) part(i int, pos, length uint64) ([]byte, error) {
	from := uint64(boltHeader+i*boltElement) + pos
	if from < uint64(boltHeader+p.count*boltElement) || from+length > uint64(len(p.data)) {
		return nil, p.fault("element %d has %d bytes at %d, which are not in the page", i, length, from)
	}
	return p.data[from : from+length : from+length], nil
}

// ordered checks that the keys ascend from low and are less than high. The first key is low itself: bbolt finds a page in its parent by its first key,
// and would not find it otherwise. Only the root of a tree, which has no limits, may be empty.
func (p *boltPage) ordered(keys [][]byte, low, high []byte) error {
	if len(keys) == 0 && low != nil {
		return p.fault("it is empty")
	}
	for i, key := range keys {
		switch {
		case len(key) == 0:
			return p.fault("key %d is empty", i)
		case i == 0 && low != nil && !bytes.Equal(low, key), i > 0 && bytes.Compare(keys[i-1], key) >= 0, high != nil && bytes.Compare(key, high) >= 0:
			return p.fault("key %d is out of order", i)
		}
	}
	return nil
}

// freePages checks the list of free pages: bbolt would write new data into them.
func (w *boltWalk) freePages(id uint64) error {
	p, err := w.page(id)
	if err != nil {
		return fmt.Errorf("list of free pages: %w", err)
	}
	if p.flags != boltFreelist {
		return p.fault("flags %#x are not those of the list of free pages", p.flags)
	}
	list, count := p.data[boltHeader:], uint64(p.count)
	if count == boltManyFree {
		count, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if count > uint64(len(list))/8 {
		return p.fault("the list of free pages has %d elements, and there is room for %d", count, len(list)/8)
	}
	last := uint64(0)
	for i := range count {
		free := binary.NativeEndian.Uint64(list[8*i:])
		switch {
		case free < 2 || free >= w.high:
			return p.fault("free page %d does not exist", free)
		case free <= last:
			return p.fault("the list of free pages is out of order")
		case w.used[free]:
			return p.fault("page %d is in use, and in the list of free pages", free)
		}
		last = free
	}
	return nil
}
