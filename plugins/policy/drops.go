package policy

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"contiv.dev/vswitch/dataplane/denied"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/policy/drops"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

const dropsPath = "/contiv/v1/policy/drops"

// Denied is the source of reports about packets that policy has dropped.
type Denied interface {
	// WatchDenied calls each for packets until ctx ends, one at a time. The dataplane limits their number.
	WatchDenied(ctx context.Context, each func(denied.Flow)) error
}

// dropRow is a flow that policy has denied.
type dropRow struct {
	Time      time.Time  `json:"time"` // of the newest packet
	First     time.Time  `json:"first"`
	Count     uint64     `json:"count"`     // packets that the dataplane has reported; it limits reports
	Direction string     `json:"direction"` // ingress or egress of Pod
	Pod       string     `json:"pod"`       // the pod whose policy denied it; empty: a pod that was removed
	Source    netip.Addr `json:"source"`
	SourcePod string     `json:"sourcePod,omitempty"`
	Dest      netip.Addr `json:"dest"`
	DestPod   string     `json:"destPod,omitempty"`
	Protocol  string     `json:"protocol"`
	Port      uint16     `json:"port,omitempty"` // destination port
	ICMPType  *uint8     `json:"icmpType,omitempty"`
	Policy    string     `json:"policy,omitempty"` // the policy whose rule denied it
	Rule      string     `json:"rule,omitempty"`
	Because   string     `json:"because"`
}

// RunDrops is the job that records the flows that policy has denied.
func (p *Plugin) RunDrops(ctx context.Context) error {
	if p.Denied == nil {
		return nil
	}
	lines := newLineLimit(time.Now())
	err := p.Denied.WatchDenied(ctx, func(f denied.Flow) {
		v, label := p.explain(f)
		if isNew := p.drops.Note(f, v, label); isNew && lines.allow(f.Time) {
			p.logDrop(f, v, lines.skipped())
		}
	})
	if err != nil && ctx.Err() == nil {
		p.Logger().Warn("packets that network policy denies are not recorded, but policies are enforced", "error", err)
	}
	return nil
}

// explain finds the pods at both ends, and evaluates the packet again, since dataplanes do not report which rule denied it.
func (p *Plugin) explain(f denied.Flow) (v drops.Verdict, label string) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	src, dst := f.Source.Addr().Unmap(), f.Dest.Addr().Unmap()
	from, sends := p.compiler.Owner(src)
	to, receives := p.compiler.Owner(dst)
	if sends {
		v.SourcePod = from.String()
	}
	if receives {
		v.DestPod = to.String()
	}
	pod := from
	if f.Ingress {
		pod = to
	}
	d := p.decide(pod, false, f.Ingress, verdict.Packet{Source: src, Dest: dst, Protocol: model.Protocol(f.Protocol), Port: f.Dest.Port()})
	switch {
	case d == nil:
		v.Because = "the pod has left this node"
		return v, drops.Others
	case d.Action == model.Allow.String():
		v.Pod, v.Because = pod, "policies have changed since"
		return v, drops.Others
	}
	v.Pod, v.Policy, v.Rule, v.Because = pod, d.Policy, d.Rule, d.Because
	if d.Rule != "" {
		return v, d.Policy
	}
	return v, p.isolating(pod, f.Ingress)
}

// isolating returns the name of the policy that isolates a pod; if there are several, it returns their namespace.
func (p *Plugin) isolating(pod model.EndpointID, ingress bool) string {
	e := p.endpoints[pod]
	d := e.Egress
	if ingress {
		d = e.Ingress
	}
	names := strings.Split(policyNames(d, model.TierNetworkPolicy), ", ")
	switch {
	case len(p.compiler.Blocked(pod.Namespace)) > 0:
		return "blocked namespace"
	case names[0] == "":
		return "no object"
	case len(names) == 1:
		return names[0]
	}
	return pod.Namespace + "/*"
}

func (p *Plugin) logDrop(f denied.Flow, v drops.Verdict, skipped uint64) {
	p.Logger().Info("network policy denied a connection", "direction", direction(f.Ingress), "pod", v.Pod.String(), "source", f.Source.String(),
		"sourcePod", v.SourcePod, "dest", f.Dest.String(), "destPod", v.DestPod, "protocol", protocolName(f.Protocol), "policy", v.Policy,
		"rule", v.Rule, "reason", v.Because, "notLogged", skipped)
}

func direction(ingress bool) string {
	if ingress {
		return "ingress"
	}
	return "egress"
}

func protocolName(n uint8) string {
	switch n {
	case 1:
		return "ICMP"
	case 58:
		return "ICMPv6"
	}
	return model.Protocol(n).String()
}

func (p *Plugin) serveDrops(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	pod := ""
	if q.Get("pod") != "" {
		namespace, name := splitName(q.Get("pod"))
		pod = namespace + "/" + name
	}
	rows := []dropRow{}
	for _, f := range p.drops.Flows(time.Time{}) {
		if row := rowOf(f); pod == "" || pod == row.Pod || pod == row.SourcePod || pod == row.DestPod {
			rows = append(rows, row)
		}
	}
	rest.WriteJSON(w, http.StatusOK, rows)
}

func rowOf(f drops.Flow) dropRow {
	row := dropRow{
		Pod: f.Pod.String(), Time: f.Time, First: f.First, Count: f.Count, Direction: direction(f.Ingress), Source: f.Source.Addr().Unmap(), SourcePod: f.SourcePod,
		Dest: f.Dest.Addr().Unmap(), DestPod: f.DestPod, Protocol: protocolName(f.Protocol), Port: f.Dest.Port(), Policy: f.Policy, Rule: f.Rule,
		Because: f.Because,
	}
	if f.Protocol == 1 || f.Protocol == 58 {
		row.ICMPType = &f.ICMPType
	}
	return row
}

// DeniedCounts returns the number of packets that the dataplane has reported, by policy and direction. It may be called from any goroutine.
func (p *Plugin) DeniedCounts() map[drops.Label]uint64 { return p.drops.Counts() }

// Limits of the log lines about denied flows: dropLines at once, and one more per dropLineEvery.
const (
	dropLines     = 20
	dropLineEvery = 5 * time.Second
)

// lineLimit limits lines of the log. It is used by one goroutine.
type lineLimit struct {
	left int
	last time.Time // the last time when left was increased
	lost uint64
}

func newLineLimit(now time.Time) *lineLimit { return &lineLimit{left: dropLines, last: now} }

func (l *lineLimit) allow(now time.Time) bool {
	if n := int(now.Sub(l.last) / dropLineEvery); n > 0 {
		l.left, l.last = min(l.left+n, dropLines), now
	}
	if l.left == 0 {
		l.lost++
		return false
	}
	l.left--
	return true
}

// skipped returns the number of lines that were left out since the last line.
func (l *lineLimit) skipped() uint64 {
	n := l.lost
	l.lost = 0
	return n
}
