package idalloc

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"contiv.dev/vswitch/plugins/idalloc/idallocation"
)

const (
	// ksrPrefix is the root of the shared data of nodes.
	ksrPrefix = "/vnf-agent/contiv-ksr/"
	// guardPrefix is the prefix of the keys of IDs in quarantine. The database itself deletes such a key when the quarantine ends.
	guardPrefix = "/contiv-quarantine/idalloc/"
	labelPart   = "/label/"
	idPart      = "/id/"
)

// The keys of a pool, all absolute. Pool names have no slash, and labels are escaped.
func poolKey(pool string) string  { return ksrPrefix + KeyPrefix + pool }
func labelDir(pool string) string { return poolKey(pool) + labelPart }
func idDir(pool string) string    { return poolKey(pool) + idPart }
func guardDir(pool string) string { return guardPrefix + pool + "/" }

func labelKey(pool, label string) string     { return labelDir(pool) + url.PathEscape(label) }
func idKey(pool string, id uint32) string    { return idDir(pool) + number(id) }
func guardKey(pool string, id uint32) string { return guardDir(pool) + number(id) }

func number(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// idOf returns the ID at the end of a key, or zero if there is none.
func idOf(key string) uint32 {
	id, err := strconv.ParseUint(key[strings.LastIndexByte(key, '/')+1:], 10, 32)
	if err != nil {
		return 0
	}
	return uint32(id)
}

// splitLabelKey returns the pool and the label of a key below the root; ok is false for keys of another kind.
func splitLabelKey(key string) (pool, label string, ok bool) {
	pool, escaped, ok := strings.Cut(strings.TrimPrefix(key, KeyPrefix), labelPart)
	if !ok {
		return "", "", false
	}
	label, err := url.PathUnescape(escaped)
	return pool, label, err == nil
}

// Allocation is the allocation of an ID to a label.
type Allocation struct {
	Label string `json:"label"`
	ID    uint32 `json:"id"`
	Owner string `json:"owner"`
}

// encode returns the stored form of an allocation.
func (a Allocation) encode() ([]byte, error) {
	return encode(&idallocation.Entry{Label: a.Label, Id: a.ID, Owner: a.Owner})
}

func allocationOf(e *idallocation.Entry) Allocation {
	return Allocation{Label: e.GetLabel(), ID: e.GetId(), Owner: e.GetOwner()}
}

func encode(e *idallocation.Entry) ([]byte, error) {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("idalloc: %w", err)
	}
	return data, nil
}

func decode(key string, data []byte) (*idallocation.Entry, error) {
	e := &idallocation.Entry{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("%s cannot be read; delete it: %w", key, err)
	}
	return e, nil
}
