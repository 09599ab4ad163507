package nodesync

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// allocateTimeout bounds the allocation of an ID, which is the only thing that the event loop ever waits for the database
// for: nothing can be configured before.
const allocateTimeout = 15 * time.Second

// encode is the stored form of a record: JSON with the field names of the message.
func encode(record *vppnode.VppNode) ([]byte, error) {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("record of node %s: %w", record.GetName(), err)
	}
	return data, nil
}

// allocateID claims the first free ID. Other nodes may do the same at this moment; each failed claim means that one of them
// has got an ID, so it goes on until there is one for this node.
func (ns *NodeSync) allocateID() (uint32, error) {
	name := ns.ServiceLabel.GetAgentLabel()
	if !ns.state.connected.Load() {
		return 0, fmt.Errorf("node %s has no ID yet and the cluster database does not answer: check that etcd is running and that "+
			"its endpoints are right; the agent goes on by itself once it is there", name)
	}
	// The event handler has no context to derive from.
	ctx, cancel := context.WithTimeout(context.Background(), allocateTimeout)
	defer cancel()
	tried := map[uint32]bool{}
	for ctx.Err() == nil {
		id := ns.nextID(tried)
		tried[id] = true
		ok, err := ns.claim(ctx, id)
		if err != nil {
			return 0, fmt.Errorf("allocating an ID for node %s: %w", name, err)
		}
		if ok {
			return id, nil
		}
	}
	return 0, fmt.Errorf("allocating an ID for node %s: %d IDs were taken by others first; it is tried again: %w", name, len(tried),
		ctx.Err())
}

// nextID is the ID to try next: the one that the node had before, else the first free one.
func (ns *NodeSync) nextID(tried map[uint32]bool) uint32 {
	s := ns.state
	if len(tried) == 0 && s.preferred != nil {
		if id, ok := s.preferred(); ok && id != 0 && s.sources.records[id] == nil {
			return id
		}
	}
	return s.sources.freeID(tried)
}

// claim puts this node's record under the ID. It also succeeds if the record is there already, from an attempt of which the
// answer got lost.
func (ns *NodeSync) claim(ctx context.Context, id uint32) (bool, error) {
	record := &vppnode.VppNode{Id: id, Name: ns.ServiceLabel.GetAgentLabel()}
	value, err := encode(record)
	if err != nil {
		return false, err
	}
	ok, err := ns.DB.PutIfNotExists(ksrPrefix+recordKey(id), value)
	if ok && err == nil {
		return true, nil
	}
	var there vppnode.VppNode
	found, _, readErr := ns.DB.NewBroker(ksrPrefix).GetValue(ctx, recordKey(id), &there)
	if readErr != nil {
		return false, errors.Join(err, readErr)
	}
	if found {
		return there.GetName() == record.GetName(), nil
	}
	return false, err
}

// RememberedID looks for the node's ID in a copy of the shared state, by key below the common prefix, that was kept from
// earlier. It is meant for UsePreferredID, and to be called before the copy is replaced.
func RememberedID(values map[string][]byte, nodeName string) (id uint32, ok bool) {
	s := newSources()
	for key, value := range values {
		var record vppnode.VppNode
		if path.Dir(key) != allocatedIDs || (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(value, &record) != nil {
			continue
		}
		if id, ok := idOf(key, &record); ok {
			s.records[id] = &record
		}
	}
	return s.ownID(nodeName)
}
