package services

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// listings simulates a kernel that lists arbitrary data.
type listings struct{ data []byte }

func (d *listings) take(n int) []byte {
	n = min(n, len(d.data))
	out := d.data[:n:n]
	d.data = d.data[n:]
	return out
}

// Get returns some messages, often with the requested attributes.
func (d *listings) Get(typ int, _ uint16, _ uint8, _ func(*wire.Buffer), each func([]byte)) error {
	count := d.take(1)
	if len(count) == 0 {
		return nil
	}
	for range count[0] % 6 {
		shape := d.take(1)
		if len(shape) == 0 {
			return nil
		}
		if shape[0]%4 == 0 {
			each(d.take(int(shape[0]))) // possibly no attributes at all
			continue
		}
		each(d.message(typ, shape[0]))
	}
	return nil
}

func (d *listings) message(typ int, shape byte) []byte {
	var w wire.Buffer
	names := []string{tableName, "frontends", "counts", "sources", "backends-0", "pods", "pick", "refuse", "nat-prerouting", ""}
	name := names[int(shape)%len(names)]
	switch typ {
	case unix.NFT_MSG_GETTABLE:
		w.Uint32(unix.NFTA_TABLE_FLAGS, uint32(shape>>6))
	case unix.NFT_MSG_GETCHAIN:
		w.String(unix.NFTA_CHAIN_TABLE, tableName)
		w.String(unix.NFTA_CHAIN_NAME, name)
		if shape&1 != 0 {
			w.Bytes(unix.NFTA_CHAIN_HOOK, d.take(12))
		}
	case unix.NFT_MSG_GETRULE:
		w.Bytes(unix.NFTA_RULE_EXPRESSIONS, d.take(int(shape)))
		w.Bytes(unix.NFTA_RULE_USERDATA, d.take(int(shape)))
	case unix.NFT_MSG_GETSET:
		w.String(unix.NFTA_SET_NAME, name)
		w.Bytes(unix.NFTA_SET_FLAGS, d.take(4))
		w.Bytes(unix.NFTA_SET_KEY_LEN, d.take(4))
	case unix.NFT_MSG_GETSETELEM:
		list := w.Nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS)
		for range shape % 4 {
			at := w.Nest(unix.NFTA_LIST_ELEM)
			key := w.Nest(unix.NFTA_SET_ELEM_KEY)
			w.Bytes(unix.NFTA_DATA_VALUE, d.take([]int{12, 4, 16, int(shape)}[shape%4]))
			w.EndNest(key)
			data := w.Nest(unix.NFTA_SET_ELEM_DATA)
			w.Bytes(uint16(1+shape%2), d.take(int(shape)%40))
			w.EndNest(data)
			w.EndNest(at)
		}
		w.EndNest(list)
	}
	return w.B
}

func fuzzService() *lb.Service {
	g := &lb.Group{ID: 1, Verdict: lb.Reject}
	key := lb.Key{Addr: netip.MustParseAddr("10.96.0.1"), Proto: 6, Port: 80}
	return &lb.Service{Name: "ns/a", Affinity: time.Minute, Ports: []lb.Port{{Name: "http", Family: table.IPv4, Proto: 6,
		Frontends: []lb.Frontend{{Key: key, Cluster: true, Inside: g, Outside: g, Restricted: true,
			Sources: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}}}}
}

// FuzzDump: reading arbitrary data that the kernel lists, or that another program has written to the tables, does not panic, and the
// messages written afterwards are valid.
func FuzzDump(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x01\x41\x05\x01\x02\x03\x04\x05\x01aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	seed := make([]byte, 3000)
	for i := range seed {
		seed[i] = byte(i*7 + i/256)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBalancer(table.IPv4)
		b.add(&service{Service: fuzzService()})
		d := &listings{data: data}
		if err := b.load(wire.NewLister(d, tableName, b.f.Proto)); err != nil {
			return
		}
		for _, write := range []func(*wire.Batch){b.prepare, func(t *wire.Batch) { b.write(t, 0) }} {
			out := wire.NewBatch(tableName, 1)
			write(out)
			for rest := out.B; len(rest) > 0; {
				size := int(binary.NativeEndian.Uint32(rest))
				if size < unix.SizeofNlMsghdr || size > len(rest) {
					t.Fatalf("a message of %d bytes in %d", size, len(rest))
				}
				rest = rest[min((size+3)&^3, len(rest)):]
			}
		}
		b.prepared()
		b.done()
		if b.pending(0) {
			t.Fatal("something is pending after all was written")
		}
	})
}
