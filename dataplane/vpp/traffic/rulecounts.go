package traffic

import (
	"context"
	"fmt"
	"sync"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// PolicyCounts holds how often each rule of a policy has matched, in the order of the policy's rules.
type PolicyCounts struct{ Ingress, Egress []uint64 }

// RuleCounts reads how often rules have matched.
type RuleCounts struct {
	conn *conn.Conn

	mu   sync.Mutex // held during a request
	lane *conn.Lane // guarded by mu
}

// NewRuleCounts returns a RuleCounts with its own lane; it sends no requests before Read.
func NewRuleCounts(c *conn.Conn) *RuleCounts { return &RuleCounts{conn: c, lane: c.Lane()} }

// Read returns the counts of all policies that VPP has, by ID. VPP counts from 0 after its start, and after a change of the policy's
// rules.
func (r *RuleCounts) Read(ctx context.Context) (map[uint64]PolicyCounts, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.conn.State().Connected() {
		return nil, nil
	}
	all := map[uint64]PolicyCounts{}
	var failed error
	conn.Dump(r.lane, &contiv.ContivPolicyDump{}, func(d *contiv.ContivPolicyDetails) {
		var c PolicyCounts
		for i := range d.Rules {
			if i < int(d.NIngress) {
				c.Ingress = append(c.Ingress, d.Rules[i].Matched)
			} else {
				c.Egress = append(c.Egress, d.Rules[i].Matched)
			}
		}
		all[d.ID] = c
	}, func(err error) { failed = err })
	r.lane.Flush(ctx)
	if failed != nil {
		return nil, fmt.Errorf("vpp: list the counters of policies: %w", failed)
	}
	return all, nil
}
