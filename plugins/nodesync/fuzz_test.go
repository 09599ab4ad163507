package nodesync

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

// FuzzRecords: for any data below allocatedIDs, reading does not panic, valid records are written in the same form again, no two nodes have
// one ID, records without a name or with another ID do not count, and deleted records leave no state.
func FuzzRecords(f *testing.F) {
	f.Add("1", []byte(`{"id":1,"name":"n1","ip_addresses":["192.168.16.1/24","fd00:16::1/64"],"mgmt_addresses":["10.0.0.1"]}`), "2",
		[]byte(`{"name":"n1","ip_address":"192.168.16.2/24"}`))
	f.Add("0", []byte(`{}`), "-1", []byte(`null`))
	f.Add("4294967296", []byte(`{"id":4294967296}`), "01", []byte(`{"name":"a","claimed_ms":"-9223372036854775808"}`))
	f.Add("7", []byte(`{"name":"n","ip_addresses":["::ffff:1.2.3.4/100","1.2.3.4/33","fe80::1%eth0/64",""]}`), "7", []byte(`[`))
	f.Add("5", []byte(`{"ip_address":"192.168.16.5/24"}`), "6", []byte(`{"id":7,"name":"n7"}`))
	f.Fuzz(func(t *testing.T, firstKey string, first []byte, secondKey string, second []byte) {
		s := newSources(2)
		v := &view{sources: newSources(2), revs: map[uint32]int64{}, guard: map[uint32]int64{}}
		for i, kv := range []cas.Value{{Key: ksrPrefix + allocatedIDs + "/" + firstKey, Value: first},
			{Key: ksrPrefix + allocatedIDs + "/" + secondKey, Value: second}} {
			kv.Rev = int64(i + 1)
			v.take(kv)
			record, err := decode(kv.Value)
			if err != nil {
				continue
			}
			again, err := encode(record)
			if err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			if back, err := decode(again); err != nil || !proto.Equal(back, record) {
				t.Fatalf("%v is read back as %v: %v", record, back, err)
			}
			names, err := s.set(allocatedIDs+"/"+kv.Key[len(ksrPrefix+allocatedIDs)+1:], record)
			if err != nil {
				continue
			}
			if id := idInKey(kv.Key); record.GetName() == "" || record.GetId() != 0 && record.GetId() != id {
				t.Fatalf("%s counts, with the record %v", kv.Key, record)
			}
			for _, name := range names {
				n := s.node(name)
				if n == nil {
					continue
				}
				for _, ip := range n.VppIPAddresses {
					if !ip.Address.IsValid() || !ip.Network.IsValid() {
						t.Fatalf("node %s has the address %v", name, ip)
					}
				}
				if id, ok := s.idOf(name); !ok || id != n.ID || s.records[id].GetName() != name {
					t.Fatalf("node %s has the ID %d, by record %v", name, n.ID, s.records[id])
				}
			}
			badAddresses(record)
		}
		for _, key := range []string{firstKey, secondKey} {
			_, _ = s.set(allocatedIDs+"/"+key, nil)
		}
		if len(s.records)+len(s.byName)+len(s.broken) > 0 {
			t.Fatalf("left: %v, %v, %v", s.records, s.byName, s.broken)
		}
		for name, ids := range v.byName {
			if slices.Contains(ids, 0) {
				t.Fatalf("node %q has the ID 0", name)
			}
		}
	})
}
