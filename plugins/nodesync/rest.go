package nodesync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

const (
	// nodesPath is the path of the list of nodes in the cluster database.
	nodesPath = "/contiv/v1/nodes"
	// releasePath is the path for the release of a deleted node's ID: POST {"name": "worker-7"}.
	releasePath = "/contiv/v1/nodes/release"
	// restTimeout bounds the database calls for a request.
	restTimeout = 15 * time.Second
	maxBody     = 4096
)

// NodeReport is a node in the response to GET /contiv/v1/nodes.
type NodeReport struct {
	ID         uint32    `json:"id"`
	Name       string    `json:"name"`
	State      string    `json:"state"` // "claimed", "quarantine", "released"
	UUID       string    `json:"uuid,omitempty"`
	Generation uint32    `json:"generation"`
	Claimed    time.Time `json:"claimed,omitzero"`
	Released   time.Time `json:"released,omitzero"`
	VPPIPs     []string  `json:"vppIPs"`
	MgmtIPs    []string  `json:"mgmtIPs"`
	// Version is the version of the agent that wrote the record.
	Version  string   `json:"version,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// nodesReport is the response to GET /contiv/v1/nodes.
type nodesReport struct {
	Nodes []NodeReport `json:"nodes"`
	// Broken maps the keys of skipped records to their faults.
	Broken map[string]string `json:"broken"`
	// Stale is set if the response is from memory, and gives the reason: such a response has no generations, IDs in quarantine or broken
	// records.
	Stale string `json:"stale,omitempty"`
}

func (v *view) report() nodesReport {
	out := nodesReport{Nodes: make([]NodeReport, 0, len(v.records)), Broken: v.broken}
	for _, id := range slices.Sorted(maps.Keys(v.records)) {
		out.Nodes = append(out.Nodes, v.nodeReport(id, v.records[id]))
	}
	return out
}

func (v *view) nodeReport(id uint32, r *vppnode.VppNode) NodeReport {
	n := NodeReport{
		ID: id, Name: r.GetName(), State: "claimed", UUID: r.GetUuid(), Generation: r.GetGeneration(),
		VPPIPs: addressTexts(addressesOf(r)), MgmtIPs: append([]string{}, r.GetMgmtAddresses()...), Version: r.GetAgentVersion(),
	}
	if r.GetClaimedMs() != 0 {
		n.Claimed = time.UnixMilli(r.GetClaimedMs()).UTC()
	}
	if isReleased(r) {
		n.State, n.Released = "released", time.UnixMilli(r.GetReleasedMs()).UTC()
		if v.guard[id] != 0 {
			n.State = "quarantine"
		}
	}
	if bad := badAddresses(r); len(bad) > 0 {
		n.Problems = append(n.Problems, "cannot be read as addresses: "+strings.Join(bad, ", "))
	}
	if len(v.byName[r.GetName()]) > 1 && !isReleased(r) {
		n.Problems = append(n.Problems, fmt.Sprintf("the node has more than one ID: %v", v.byName[r.GetName()]))
	}
	return n
}

func (ns *NodeSync) serveNodes(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), restTimeout)
	defer cancel()
	v, err := ns.readNodes(ctx)
	if err == nil {
		rest.WriteJSON(w, http.StatusOK, v.report())
		return
	}
	if report, ok := ns.state.remembered.report(err); ok {
		rest.WriteJSON(w, http.StatusOK, report)
		return
	}
	rest.WriteError(w, http.StatusServiceUnavailable, err)
}

var errAway = errors.New("the connection is lost")

// readNodes returns an error at once if the connection to the database is known to be lost.
func (ns *NodeSync) readNodes(ctx context.Context) (*view, error) {
	if db, ok := ns.DB.(interface{ Connected() bool }); ok && !db.Connected() {
		return nil, errAway
	}
	return readView(ctx, ns.state.store)
}

func (ns *NodeSync) serveRelease(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), restTimeout)
	defer cancel()
	var request struct {
		Name string `json:"name"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil || request.Name == "" {
		rest.WriteError(w, http.StatusBadRequest, errors.New(`send {"name": "<name of the node>"}`))
		return
	}
	switch err := ns.ReleaseNodeID(ctx, request.Name); {
	case err == nil:
		rest.WriteJSON(w, http.StatusOK, map[string]string{"released": request.Name})
	case errors.Is(err, errNoSuchNode):
		rest.WriteError(w, http.StatusNotFound, err)
	case errors.Is(err, errOwnNode):
		rest.WriteError(w, http.StatusConflict, err)
	default:
		rest.WriteError(w, http.StatusServiceUnavailable, err)
	}
}
