package nodesync

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

const (
	// ksrPrefix is the root of the shared data of nodes.
	ksrPrefix = "/vnf-agent/contiv-ksr/"
	// allocatedIDs is the resource of VppNode records, and the start of their keys below ksrPrefix.
	allocatedIDs = "allocatedIDs"
	// guardPrefix is the prefix of the keys of IDs in quarantine. The database itself deletes such a key when the quarantine ends. The
	// prefix is outside the keys that nodes watch.
	guardPrefix = "/contiv-quarantine/node/"
)

// recordKey returns the key of the record of a node ID below ksrPrefix.
func recordKey(id uint32) string { return allocatedIDs + "/" + strconv.FormatUint(uint64(id), 10) }

// fullKey returns the key of the record of a node ID.
func fullKey(id uint32) string { return ksrPrefix + recordKey(id) }

func guardKey(id uint32) string { return guardPrefix + strconv.FormatUint(uint64(id), 10) }

// idInKey returns the ID in a key, or zero if there is none.
func idInKey(key string) uint32 {
	id, err := strconv.ParseUint(path.Base(key), 10, 32)
	if err != nil || strconv.FormatUint(id, 10) != path.Base(key) {
		return 0
	}
	return uint32(id)
}

// encode returns the stored form of a record: JSON with the field names of the message.
func encode(record *vppnode.VppNode) ([]byte, error) {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("record of node %s: %w", record.GetName(), err)
	}
	return data, nil
}

// decode parses the stored form; fields of later versions are ignored.
func decode(data []byte) (*vppnode.VppNode, error) {
	record := &vppnode.VppNode{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, record); err != nil {
		return nil, fmt.Errorf("record of a node: %w", err)
	}
	return record, nil
}

// check returns an error if a record is unusable.
func check(key string, record *vppnode.VppNode) error {
	id := idInKey(key)
	switch {
	case id == 0:
		return fmt.Errorf("the key %s does not end in a node ID; delete it", key)
	case record.GetName() == "":
		return fmt.Errorf("%s has no node name; delete it if no node has the ID %d", key, id)
	case record.GetId() != 0 && record.GetId() != id:
		return fmt.Errorf("%s says that it is for the ID %d; delete it if no node has the ID %d", key, record.GetId(), id)
	}
	return nil
}

// sources holds the data about nodes from their records and from Kubernetes. The cost of a change does not depend on the number of nodes.
type sources struct {
	// records holds the valid records by node ID, including those of released IDs.
	records map[uint32]*vppnode.VppNode
	// byName holds the IDs that are claimed in the name of a node: one, unless there is a record of an earlier installation of the node.
	byName map[string][]uint32
	// broken maps the keys of skipped records to their faults.
	broken map[string]string
	// kube holds the addresses of Kubernetes' Node objects by node name, whether or not the node has a record.
	kube map[string][]net.IP
}

func newSources(size int) sources {
	return sources{
		records: make(map[uint32]*vppnode.VppNode, size), byName: make(map[string][]uint32, size), broken: map[string]string{},
		kube: map[string][]net.IP{},
	}
}

// set stores a new value of a record, nil if it was deleted, and returns the names of the affected nodes. If the record is invalid, set
// returns the reason; then the ID counts as having no record.
func (s *sources) set(key string, record *vppnode.VppNode) (names []string, err error) {
	delete(s.broken, key)
	if record != nil {
		if err = check(key, record); err != nil {
			s.broken[key] = err.Error()
			record = nil
		}
	}
	id := idInKey(key)
	if id == 0 {
		return nil, err
	}
	if old := s.records[id]; old != nil {
		names = append(names, old.GetName())
		s.unname(old.GetName(), id)
		delete(s.records, id)
	}
	if record != nil {
		s.records[id] = record
		if name := record.GetName(); !slices.Contains(names, name) {
			names = append(names, name)
		}
		if !isReleased(record) {
			s.byName[record.GetName()] = append(s.byName[record.GetName()], id)
		}
	}
	return names, err
}

func (s *sources) unname(name string, id uint32) {
	ids := slices.DeleteFunc(s.byName[name], func(other uint32) bool { return other == id })
	if len(ids) == 0 {
		delete(s.byName, name)
		return
	}
	s.byName[name] = ids
}

// idOf returns the ID of the node called name. If there is a record of an earlier installation, the latest claim counts, and of claims
// without a time the lowest ID.
func (s *sources) idOf(name string) (uint32, bool) {
	var best uint32
	for _, id := range s.byName[name] {
		at, bestAt := s.records[id].GetClaimedMs(), s.records[best].GetClaimedMs()
		if best == 0 || at > bestAt || (at == bestAt && id < best) {
			best = id
		}
	}
	return best, best != 0
}

// ownID returns the ID of the record that belongs to this node.
func (s *sources) ownID(me self) (uint32, bool) {
	var own sources
	own.records = s.records
	own.byName = map[string][]uint32{me.name: slices.DeleteFunc(slices.Clone(s.byName[me.name]), func(id uint32) bool {
		return !me.owns(s.records[id])
	})}
	return own.idOf(me.name)
}

// published returns the node that the record of the node called name describes; nil when it has no record.
func (s *sources) published(name string) *Node {
	id, ok := s.idOf(name)
	if !ok {
		return nil
	}
	return nodeOf(id, s.records[id])
}

// node combines the data of the node called name; it returns nil when the node has no record. Its management addresses are those of its
// record, which its agent has found on its interfaces, followed by those that only Kubernetes has.
func (s *sources) node(name string) *Node {
	n := s.published(name)
	if n == nil {
		return nil
	}
	for _, ip := range s.kube[name] {
		if !slices.ContainsFunc(n.MgmtIPAddresses, ip.Equal) {
			n.MgmtIPAddresses = append(n.MgmtIPAddresses, ip)
		}
	}
	return n
}

// setKube stores the current addresses of a Node object; nil means that there is none.
func (s *sources) setKube(name string, node *model.Node) {
	delete(s.kube, name)
	for _, text := range node.GetAddresses() {
		if a, err := netip.ParseAddr(text); err == nil {
			s.kube[name] = append(s.kube[name], net.IP(a.Unmap().AsSlice()))
		}
	}
}
