package idalloc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/idalloc/idallocation"
)

const (
	// allocationsPath is the path of the list of pools in the cluster database.
	allocationsPath = "/contiv/v1/idalloc"
	// releasePath is the path for the release of all IDs that a deleted node owns: POST {"owner": "worker-7"}.
	releasePath = "/contiv/v1/idalloc/release"
	restTimeout = 30 * time.Second
	maxBody     = 4096
)

// poolReport is a pool in the response to GET.
type poolReport struct {
	Name        string       `json:"name"`
	Min         uint32       `json:"min"`
	Max         uint32       `json:"max"`
	Reserved    []uint32     `json:"reserved"`
	Allocations []Allocation `json:"allocations"`
	// Quarantine holds the IDs that were released recently.
	Quarantine []uint32 `json:"quarantine"`
	Problems   []string `json:"problems,omitempty"`
}

// ReleaseOwnedBy releases all IDs that a node owns, in all pools of the cluster, for a permanently deleted node. It returns their number.
// It waits for the database, so it must not be called from the event loop.
func (p *IDAlloc) ReleaseOwnedBy(ctx context.Context, node string) (int, error) {
	if p.store == nil {
		return 0, errors.New("idalloc: Init has not been called")
	}
	if node == p.Node {
		return 0, fmt.Errorf("idalloc: %s is this node, which runs; its plugins release what they do not need", node)
	}
	pools, err := p.store.pools(ctx)
	count := 0
	for _, in := range pools {
		list, listErr := p.store.list(ctx, in)
		err = errors.Join(err, listErr)
		for _, a := range list {
			if a.Owner != node {
				continue
			}
			if e := p.store.release(ctx, in, a.Label, node); e != nil {
				err = errors.Join(err, e)
				continue
			}
			count++
		}
	}
	return count, err
}

// pools returns all pools in the database.
func (s *store) pools(ctx context.Context) ([]*pool, error) {
	keys, _, err := s.db.Keys(ctx, ksrPrefix+KeyPrefix, 0)
	if err != nil {
		return nil, err
	}
	var out []*pool
	var errs []error
	for _, k := range keys {
		key := k.Key
		if strings.Contains(strings.TrimPrefix(key, ksrPrefix+KeyPrefix), "/") {
			continue
		}
		v, err := s.db.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		e := &idallocation.Entry{}
		if v.Rev != 0 {
			e, err = decode(key, v.Value)
		}
		var in *pool
		if err == nil {
			ids := e.GetRange()
			in, err = newPool(path.Base(key), Range{Min: ids.GetMinId(), Max: ids.GetMaxId()}, ids.GetReserved())
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, in)
	}
	return out, errors.Join(errs...)
}

func (s *store) report(ctx context.Context) ([]poolReport, error) {
	pools, err := s.pools(ctx)
	if pools == nil && err != nil {
		return nil, err
	}
	out := []poolReport{}
	for _, in := range pools {
		r := poolReport{
			Name: in.name, Min: in.ids.Min, Max: in.ids.Max, Reserved: append([]uint32{}, in.entry().GetRange().GetReserved()...),
			Allocations: []Allocation{}, Quarantine: []uint32{},
		}
		list, err := s.list(ctx, in)
		if err != nil {
			r.Problems = append(r.Problems, err.Error())
		}
		r.Allocations = append(r.Allocations, list...)
		guards, _, err := s.db.Keys(ctx, guardDir(in.name), 0)
		if err != nil {
			return nil, err
		}
		for _, key := range guards {
			r.Quarantine = append(r.Quarantine, idOf(key.Key))
		}
		out = append(out, r)
	}
	return out, nil
}

func (p *IDAlloc) serveAllocations(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), restTimeout)
	defer cancel()
	report, err := p.store.report(ctx)
	if err != nil {
		rest.WriteError(w, http.StatusServiceUnavailable, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, map[string]any{"pools": report})
}

func (p *IDAlloc) serveRelease(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), restTimeout)
	defer cancel()
	var request struct {
		Owner string `json:"owner"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil || request.Owner == "" {
		rest.WriteError(w, http.StatusBadRequest, errors.New(`send {"owner": "<name of the node that is gone>"}`))
		return
	}
	count, err := p.ReleaseOwnedBy(ctx, request.Owner)
	if err != nil {
		rest.WriteJSON(w, http.StatusServiceUnavailable, map[string]any{"error": err.Error(), "released": count})
		return
	}
	rest.WriteJSON(w, http.StatusOK, map[string]any{"released": count})
}
