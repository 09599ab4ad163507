package relay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/clusterdb/cas"
)

// etcdModel models the properties of etcd that table uses: values, a revision per change and a delayed feed.
type etcdModel struct {
	rev    int64
	values map[string]cas.Value
	feed   []cas.Value // not observed yet
}

func (m *etcdModel) commit(writes []cas.Write) int64 {
	m.rev++
	for _, w := range writes {
		_, there := m.values[w.Key]
		if w.Value == nil && !there {
			continue
		}
		v := cas.Value{Key: w.Key, Value: w.Value, Rev: m.rev}
		m.feed = append(m.feed, v)
		if w.Value == nil {
			delete(m.values, w.Key)
		} else {
			m.values[w.Key] = v
		}
	}
	return m.rev
}

func (m *etcdModel) list() []cas.Value {
	m.feed = nil
	var out []cas.Value
	for _, v := range m.values {
		out = append(out, v)
	}
	return out
}

// is reports whether etcd contains exactly these values, and the marker.
func (m *etcdModel) is(want map[string]string) bool {
	got := map[string]string{}
	for key, v := range m.values {
		got[key] = string(v.Value)
	}
	delete(got, markerKey)
	return maps.Equal(got, want) && m.values[markerKey].Rev != 0
}

// settle writes and observes until no work is left.
func (m *etcdModel) settle(t *testing.T, tab *table) {
	t.Helper()
	for range 1000 {
		writes := tab.next()
		if writes == nil && tab.markerDue() {
			m.commit([]cas.Write{{Key: markerKey, Value: []byte("x")}})
			tab.marked()
			continue
		}
		if writes != nil {
			checkBatch(t, writes)
			tab.written(writes, m.commit(writes))
		}
		if writes == nil && len(m.feed) == 0 {
			return
		}
		tab.observe(m.feed)
		m.feed = nil
	}
	t.Fatal("it never ends")
}

func checkBatch(t *testing.T, writes []cas.Write) {
	t.Helper()
	seen := map[string]bool{}
	for _, w := range writes {
		if seen[w.Key] {
			t.Fatalf("%s is twice in a batch", w.Key)
		}
		seen[w.Key] = true
	}
	if len(writes) > maxOps {
		t.Fatalf("a batch of %d", len(writes))
	}
}

// TestRandomTable checks that after random operations etcd reaches the wanted state, and that nothing more is written
// then.
func TestRandomTable(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		tab := newTable()
		etcd := &etcdModel{values: map[string]cas.Value{}}
		want := map[string]string{}
		tab.setAll(maps.Clone(want), nil)
		tab.load(etcd.list())
		key := func() string { return fmt.Sprintf("%s%03d", statePrefix, rnd.IntN(40)) }
		for range 300 {
			switch n := rnd.IntN(100); {
			case n < 40:
				k, data := key(), fmt.Sprint(rnd.IntN(3))
				want[k] = data
				tab.set(k, data)
			case n < 55:
				k := key()
				delete(want, k)
				tab.remove(k)
			case n < 60:
				tab.setAll(maps.Clone(want), nil)
			case n < 68: // another program
				etcd.commit([]cas.Write{{Key: key(), Value: []byte("foreign")}})
			case n < 74:
				etcd.commit([]cas.Write{{Key: key()}})
			case n < 75:
				etcd.commit([]cas.Write{{Key: markerKey}})
			case n < 78: // the answer to a write is lost
				etcd.commit(tab.next())
				tab.load(etcd.list())
			case n < 90:
				if writes := tab.next(); writes != nil {
					checkBatch(t, writes)
					tab.written(writes, etcd.commit(writes))
				}
			default:
				n := rnd.IntN(len(etcd.feed) + 1)
				tab.observe(etcd.feed[:n])
				etcd.feed = etcd.feed[n:]
			}
		}
		etcd.settle(t, tab)
		if !etcd.is(want) {
			t.Fatalf("seed %d: etcd has %v, want %v", seed, etcd.values, want)
		}
		rev := etcd.rev
		tab.setAll(maps.Clone(want), nil)
		etcd.settle(t, tab)
		tab.load(etcd.list())
		etcd.settle(t, tab)
		if etcd.rev != rev {
			t.Fatalf("seed %d: writes although nothing differs", seed)
		}
	}
}

// TestBatches checks that batches are limited by number and by size; a value that is larger than a batch is written
// alone.
func TestBatches(t *testing.T) {
	tab := newTable()
	want := map[string]string{}
	for i := range 250 {
		want[fmt.Sprintf("%s%04d", statePrefix, i)] = "x"
	}
	for i := range 3 {
		want[fmt.Sprintf("%sbig%d", statePrefix, i)] = strings.Repeat("x", maxBytes/2)
	}
	want[statePrefix+"huge"] = strings.Repeat("x", maxBytes+1)
	tab.setAll(want, nil)
	tab.load(nil)
	var sizes []int
	for writes := tab.next(); writes != nil; writes = tab.next() {
		sizes = append(sizes, len(writes))
		tab.written(writes, int64(len(sizes)))
	}
	if fmt.Sprint(sizes) != "[100 100 51 1 1 1]" {
		t.Errorf("batches of %v", sizes)
	}
}

// TestCoalesce checks that only the last of several changes during a slow write is written, at the place of the first.
func TestCoalesce(t *testing.T) {
	tab := newTable()
	a, b := clusterdb.KSRPrefix+serviceKey(2), clusterdb.KSRPrefix+serviceKey(1)
	tab.setAll(map[string]string{}, nil)
	tab.load(nil)
	for i := range 1000 {
		tab.set(a, fmt.Sprint(i))
		tab.set(b, fmt.Sprint(i))
	}
	tab.remove(b)
	writes := tab.next()
	if len(writes) != 1 || writes[0].Key != a || string(writes[0].Value) != "999" {
		t.Fatalf("writes %v", writes)
	}
	tab.set(a, "newer") // during the write
	tab.written(writes, 1)
	if writes = tab.next(); len(writes) != 1 || string(writes[0].Value) != "newer" {
		t.Errorf("writes %v", writes)
	}
}
