package nodesync

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
)

// IdentityStore stores private data of the node that prove its identity. It must survive a restart of the agent and of the machine, and
// must not be shared between nodes.
type IdentityStore interface {
	// LoadOwn reads a value; it returns nil if there is none.
	LoadOwn(key string) ([]byte, error)
	// SaveOwn writes a value; the value is on stable storage when SaveOwn returns.
	SaveOwn(key string, value []byte) error
}

// identityKey is the key of the identity in the IdentityStore.
const identityKey = "node-identity"

// identity is the stored identity of a node.
type identity struct {
	UUID string `json:"uuid"`
	// Name is the node's name when the identity was made. A different name means that the disk is a copy of another node's.
	Name string `json:"name"`
	// Claim is the claim of the node's ID; nil before the node has one, and after it has lost it.
	Claim *claim `json:"claim,omitempty"`
	// Rival is the UUID of the machine that has taken this node's ID under this node's name; empty if there is none.
	Rival string `json:"rival,omitempty"`

	store IdentityStore // nil: nothing is stored, and there is no UUID
}

func (i *identity) self() self { return self{name: i.Name, uuid: i.UUID} }

// loadIdentity reads the node's identity or creates one.
func loadIdentity(store IdentityStore, name string, log *slog.Logger) (*identity, error) {
	if store == nil {
		return &identity{Name: name}, nil
	}
	data, err := store.LoadOwn(identityKey)
	if err != nil {
		return nil, fmt.Errorf("identity of node %s: %w", name, err)
	}
	known := &identity{store: store}
	switch {
	case data == nil:
	case json.Unmarshal(data, known) != nil || known.UUID == "":
		log.Warn("the identity of this node cannot be read; it gets a new one", "node", name)
	case known.Name != name:
		log.Error("this node's data belong to another node: the disk was copied, or the node was renamed. It gets a new identity and "+
			"a new ID; if it was renamed, release the ID of the old name and delete the pods of this node",
			"node", name, "dataOf", known.Name, "uuid", known.UUID)
	default:
		return known, nil
	}
	fresh := &identity{UUID: newUUID(), Name: name, store: store}
	return fresh, fresh.save()
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// save writes the identity.
func (i *identity) save() error {
	if i.store == nil {
		return nil
	}
	data, err := json.Marshal(i)
	if err == nil {
		err = i.store.SaveOwn(identityKey, data)
	}
	if err != nil {
		return fmt.Errorf("identity of node %s: %w", i.Name, err)
	}
	return nil
}

// storeClaim stores the claim.
func (i *identity) storeClaim(c claim) error {
	if i.Claim != nil && *i.Claim == c {
		return nil
	}
	i.Claim, i.Rival = &c, ""
	return i.save()
}

// deleteClaim deletes the claim. rival is the UUID of the machine that now has the ID under the same name, or empty.
func (i *identity) deleteClaim(rival string) error {
	i.Claim, i.Rival = nil, rival
	return i.save()
}
