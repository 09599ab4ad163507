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
	// ksrPrefix is the root of what nodes share.
	ksrPrefix = "/vnf-agent/contiv-ksr/"
	// allocatedIDs is the resource of VppNode records, and the beginning of their keys below ksrPrefix.
	allocatedIDs = "allocatedIDs"
	// guardPrefix is where IDs in quarantine have a key that the database itself deletes when it is over. It is outside of
	// what the nodes watch.
	guardPrefix = "/contiv-quarantine/node/"
)

// recordKey is the key of the record of a node ID below ksrPrefix.
func recordKey(id uint32) string { return allocatedIDs + "/" + strconv.FormatUint(uint64(id), 10) }

// fullKey is the key of the record of a node ID.
func fullKey(id uint32) string { return ksrPrefix + recordKey(id) }

func guardKey(id uint32) string { return guardPrefix + strconv.FormatUint(uint64(id), 10) }

// idInKey is the ID that a key is for; zero if it is not one.
func idInKey(key string) uint32 {
	id, err := strconv.ParseUint(path.Base(key), 10, 32)
	if err != nil || strconv.FormatUint(id, 10) != path.Base(key) {
		return 0
	}
	return uint32(id)
}

// encode is the stored form of a record: JSON with the field names of the message.
func encode(record *vppnode.VppNode) ([]byte, error) {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("record of node %s: %w", record.GetName(), err)
	}
	return data, nil
}

// decode reads the stored form; fields of later versions are ignored.
func decode(data []byte) (*vppnode.VppNode, error) {
	record := &vppnode.VppNode{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, record); err != nil {
		return nil, fmt.Errorf("record of a node: %w", err)
	}
	return record, nil
}

// check reports what makes a record useless; nil if nothing does.
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

// sources is what is known about nodes from their records and from Kubernetes. Changing one costs the same however many there are.
type sources struct {
	// records are the useful records by node ID, those of released IDs among them.
	records map[uint32]*vppnode.VppNode
	// byName has the IDs that are claimed in the name of a node: one, unless it left a record of an earlier life behind.
	byName map[string][]uint32
	// broken says by key what is wrong with records that are skipped.
	broken map[string]string
	// kube are the addresses of Kubernetes' Node objects by node name, whether the node has a record or not.
	kube map[string][]net.IP
}

func newSources(size int) sources {
	return sources{
		records: make(map[uint32]*vppnode.VppNode, size), byName: make(map[string][]uint32, size), broken: map[string]string{},
		kube: map[string][]net.IP{},
	}
}

// set takes a new value of a record, nil if it was deleted, and returns the names of the nodes it concerns. An error says
// why it is skipped; then the ID counts as having no record.
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

// idOf is the ID of the node called name. If it has left an older record behind, the claim that was made last counts, and of
// claims without a time the lowest ID.
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

// ownID is the ID of the record that is this node's.
func (s *sources) ownID(me self) (uint32, bool) {
	var own sources
	own.records = s.records
	own.byName = map[string][]uint32{me.name: slices.DeleteFunc(slices.Clone(s.byName[me.name]), func(id uint32) bool {
		return !me.owns(s.records[id])
	})}
	return own.idOf(me.name)
}

// published is what the record of the node called name says; nil when it has no record.
func (s *sources) published(name string) *Node {
	id, ok := s.idOf(name)
	if !ok {
		return nil
	}
	return nodeOf(id, s.records[id])
}

// node puts together what is known about the node called name; nil when it has no record. Its management addresses are those of its
// record, which its agent has found on its interfaces, then those that only Kubernetes has.
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

// setKube takes the present addresses of a Node object, nil if there is none.
func (s *sources) setKube(name string, node *model.Node) {
	delete(s.kube, name)
	for _, text := range node.GetAddresses() {
		if a, err := netip.ParseAddr(text); err == nil {
			s.kube[name] = append(s.kube[name], net.IP(a.Unmap().AsSlice()))
		}
	}
}
