package clusterdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// fullCopy returns a local copy with branches, large values, free pages and the node's own values, as the contents of a file.
func fullCopy(t *testing.T) (data []byte, pageSize int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	l, err := OpenLocalCopy(path, quiet())
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]byte{"large": bytes.Repeat([]byte("x"), 20_000)}
	for i := range 600 {
		values[fmt.Sprintf("k8s/service/default/s%03d", i)] = bytes.Repeat([]byte("v"), 100)
	}
	for range 2 {
		if err := l.Replace(values); err != nil {
			t.Fatal(err)
		}
		delete(values, "k8s/service/default/s100")
	}
	if err := l.SaveOwn("node-identity", []byte("me")); err != nil {
		t.Fatal(err)
	}
	pageSize = l.db.Info().PageSize
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return data, pageSize
}

// pagesOf returns the numbers of the pages that begin with a valid header and have the given flags.
func pagesOf(data []byte, pageSize int, flags uint16) (ids []int) {
	for id := 2; (id+1)*pageSize <= len(data); id++ {
		if p := data[id*pageSize:]; binary.NativeEndian.Uint64(p) == uint64(id) && binary.NativeEndian.Uint16(p[8:]) == flags {
			ids = append(ids, id)
		}
	}
	return ids
}

// openDamaged opens a local copy with the given contents and uses it. It reports whether it was replaced by an empty one.
func openDamaged(t *testing.T, path string, data []byte) (replaced bool) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l, err := OpenLocalCopy(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatalf("the agent does not start: %v", err)
	}
	values, err := l.Load()
	if err != nil {
		t.Error(err)
	}
	if replaced = strings.Contains(log.String(), "damaged"); replaced && (len(values) > 0 || !strings.Contains(log.String(), path)) {
		t.Errorf("%d values after %s", len(values), log.String())
	}
	if err := l.Replace(map[string][]byte{"new": []byte("1")}); err != nil {
		t.Error(err)
	}
	if err := l.SaveOwn("new", []byte("1")); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return replaced
}

// TestDamagedLocalCopy damages a local copy in many ways. The agent must start, detect the damage and replace the file.
func TestDamagedLocalCopy(t *testing.T) {
	good, pageSize := fullCopy(t)
	path := filepath.Join(t.TempDir(), "state.db")
	if openDamaged(t, path, good) {
		t.Fatal("the undamaged file counts as damaged")
	}
	leaves, branches, lists := pagesOf(good, pageSize, boltLeaf), pagesOf(good, pageSize, boltBranch), pagesOf(good, pageSize, boltFreelist)
	if len(leaves) < 5 || len(branches) == 0 || len(lists) == 0 {
		t.Fatalf("the file has leaves %v, branches %v and lists %v", leaves, branches, lists)
	}
	root, list, high := metaOf(t, good, pageSize)
	branch := stateRoot(good, root*pageSize)
	if !slices.Contains(branches, branch) {
		t.Fatalf("the state has the root %d, which is not one of the branches %v", branch, branches)
	}
	for name, change := range map[string]func(d []byte){
		"number of the root page":   func(d []byte) { d[root*pageSize] ^= 1 },
		"flags of the root page":    func(d []byte) { d[root*pageSize+8] = 0x40 },
		"too many elements":         func(d []byte) { binary.NativeEndian.PutUint16(d[root*pageSize+10:], 60_000) },
		"too many further pages":    func(d []byte) { binary.NativeEndian.PutUint32(d[root*pageSize+12:], 1<<30) },
		"length of a key":           func(d []byte) { binary.NativeEndian.PutUint32(d[root*pageSize+16+8:], 1<<31) },
		"position of a key":         func(d []byte) { binary.NativeEndian.PutUint32(d[root*pageSize+16+4:], 1<<31) },
		"flags of a bucket":         func(d []byte) { d[root*pageSize+16] = 0x80 },
		"child that does not exist": func(d []byte) { binary.NativeEndian.PutUint64(d[branch*pageSize+16+8:], 1<<40) },
		"child that is the page":    func(d []byte) { binary.NativeEndian.PutUint64(d[branch*pageSize+16+8:], uint64(branch)) },
		"order of keys":             func(d []byte) { d[branch*pageSize+16+int(binary.NativeEndian.Uint32(d[branch*pageSize+16:]))] = 0xff },
		"key of a child": func(d []byte) {
			d[branch*pageSize+16+int(binary.NativeEndian.Uint32(d[branch*pageSize+16:])+binary.NativeEndian.Uint32(d[branch*pageSize+20:]))-1]--
		},
		"list is not a list":         func(d []byte) { d[list*pageSize+8] = boltLeaf },
		"list is too long":           func(d []byte) { binary.NativeEndian.PutUint16(d[list*pageSize+10:], 0xfffe) },
		"list with a huge length":    func(d []byte) { d[list*pageSize+10], d[list*pageSize+11], d[list*pageSize+23] = 0xff, 0xff, 0x7f },
		"free page does not exist":   func(d []byte) { binary.NativeEndian.PutUint64(d[list*pageSize+16:], 1<<40) },
		"free page is the root page": func(d []byte) { binary.NativeEndian.PutUint64(d[list*pageSize+16:], uint64(root)) },
	} {
		bad := slices.Clone(good)
		change(bad)
		if !openDamaged(t, path, bad) {
			t.Errorf("not detected: %s", name)
		}
	}
	for _, length := range []int{1, 100, pageSize, 2 * pageSize, 3 * pageSize, high*pageSize - 1, (high - 1) * pageSize} {
		if !openDamaged(t, path, good[:length]) {
			t.Errorf("not detected: only %d of %d bytes", length, len(good))
		}
	}
	if openDamaged(t, path, nil) {
		t.Error("an empty file counts as damaged")
	}
}

// metaOf returns the root page, the page with the list of free pages and the number of pages.
func metaOf(t *testing.T, data []byte, pageSize int) (root, list, high int) {
	t.Helper()
	w := boltWalk{file: bytes.NewReader(data), pageSize: uint64(pageSize)}
	r, f, err := w.meta()
	if err != nil {
		t.Fatal(err)
	}
	return int(r), int(f), int(w.high)
}

// stateRoot returns the root page of the first bucket in the leaf at an offset.
func stateRoot(data []byte, at int) int {
	element := data[at+boltHeader:]
	value := binary.NativeEndian.Uint32(element[4:]) + binary.NativeEndian.Uint32(element[8:])
	return int(binary.NativeEndian.Uint64(element[value:]))
}

// TestRandomDamage overwrites parts of a local copy at random. Damage of values cannot be detected, but no damage ends the agent.
func TestRandomDamage(t *testing.T) {
	good, pageSize := fullCopy(t)
	path := filepath.Join(t.TempDir(), "state.db")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd, replaced := rand.New(rand.NewPCG(seed, 1)), 0
	_, _, high := metaOf(t, good, pageSize)
	for range 150 {
		bad := slices.Clone(good)
		at := rnd.IntN(high) * pageSize
		if rnd.IntN(2) == 0 {
			at += rnd.IntN(64) // headers and elements are at the begin
		} else {
			at += rnd.IntN(pageSize)
		}
		for i := range min(1<<rnd.IntN(12), len(bad)-at) {
			bad[at+i] = byte(rnd.IntN(256))
		}
		if openDamaged(t, path, bad) {
			replaced++
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if replaced == 0 {
		t.Error("no damage was detected")
	}
}

// TestWalkOfHealthyFiles checks that files of bbolt that are not damaged are not reported: those with nested and inline buckets, without a stored
// list of free pages, and with a damaged meta page, which bbolt keeps twice.
func TestWalkOfHealthyFiles(t *testing.T) {
	for _, options := range []*bolt.Options{nil, {NoFreelistSync: true}, {PageSize: 1024}} {
		path := filepath.Join(t.TempDir(), "x.db")
		db, err := bolt.Open(path, 0o600, options)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 5 {
			err := db.Update(func(tx *bolt.Tx) error {
				outer, err := tx.CreateBucketIfNotExists([]byte("outer"))
				if err != nil {
					return err
				}
				for i := range 20 {
					inner, err := outer.CreateBucketIfNotExists([]byte(fmt.Sprintf("inner%d", i)))
					if err != nil {
						return err
					}
					for k := range i * i {
						if err := inner.Put([]byte(fmt.Sprintf("%d-%d", k, k*round)), make([]byte, 10*i)); err != nil {
							return err
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := checkBolt(path); err != nil {
			t.Errorf("%v: %v", options, err)
		}
	}
	good, pageSize := fullCopy(t)
	for meta := range 2 {
		path := filepath.Join(t.TempDir(), "x.db")
		bad := slices.Clone(good)
		bad[meta*pageSize+40] ^= 0xff
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkBolt(path); err != nil {
			t.Errorf("with a damaged meta page %d: %v", meta, err)
		}
	}
	if err := checkBolt(filepath.Join(t.TempDir(), "missing")); err != nil {
		t.Errorf("a missing file: %v", err)
	}
}

// TestWalkAfterRandomChanges checks that no sequence of writes and deletes, at any end of the key range, makes a file that counts as damaged.
func TestWalkAfterRandomChanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	path := filepath.Join(t.TempDir(), "x.db")
	for round := range 30 {
		db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 1024, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			from, n, deletes := rnd.IntN(3000), 1+rnd.IntN(400), rnd.IntN(2) == 0
			err := db.Update(func(tx *bolt.Tx) error {
				b, err := tx.CreateBucketIfNotExists([]byte{byte('a' + rnd.IntN(3))})
				for k := from; err == nil && k < from+n; k++ {
					key := fmt.Appendf(nil, "%04d", k)
					if deletes {
						err = b.Delete(key)
					} else {
						err = b.Put(key, make([]byte, rnd.IntN(100)))
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := checkBolt(path); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}
