package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
)

// policyStep is the decision of network policy about a packet, in one direction at one of its ends.
type policyStep struct {
	Direction string `json:"direction"` // egress of the sender, or ingress of the receiver
	whyAnswer
}

func (s policyStep) denies() bool { return s.Action != "allow" }

// text returns the policy and its rule, or why none decided.
func (s policyStep) text() string {
	text := fmt.Sprintf("%s of %s: %s", s.Direction, s.Pod, s.Action)
	if s.Rule != "" {
		return text + ", by " + s.Policy + " " + s.Rule
	}
	return text + ", because " + s.Because
}

// policies queries the nodes of both ends for the decision of policy about the packet after service translation. The nodes decide by the
// policies that they enforce now; a dataplane does not report which rule let a packet pass.
func (t *tracer) policies(ctx context.Context) error {
	f := t.report.Flow
	to := netip.AddrPortFrom(f.Dest, f.Port)
	if s := t.report.Service; s != nil {
		if to = s.Chosen; !to.IsValid() && len(s.Backends) == 1 {
			to = s.Backends[0].Address // VPP does not show the translated packet
		}
	}
	if !to.IsValid() {
		return nil // no backend was chosen
	}
	node, _ := t.locate(to.Addr())
	query := url.Values{"from": {f.Source.String()}, "to": {to.Addr().String()}, "protocol": {f.Proto}}
	if to.Port() != 0 {
		query.Set("port", fmt.Sprint(to.Port()))
	}
	var answers []client.Answer[[]whyRow]
	var errs []error
	for _, name := range slices.Compact([]string{t.from.node, node}) {
		agent, err := t.cluster.Agent(name)
		var rows []whyRow
		if err == nil && name != "" {
			err = agent.Get(ctx, "/contiv/v1/policies/why?"+query.Encode(), &rows)
		}
		if err != nil && name == t.from.node && !notThere(err) {
			errs = append(errs, err)
		}
		answers = append(answers, client.Answer[[]whyRow]{Node: name, Value: rows})
	}
	for _, r := range joinWhy(answers) {
		if r.Egress != nil {
			t.report.Policy = append(t.report.Policy, policyStep{"egress", *r.Egress})
		}
		if r.Ingress != nil {
			t.report.Policy = append(t.report.Policy, policyStep{"ingress", *r.Ingress})
		}
	}
	t.blame()
	return errors.Join(errs...)
}

// blame puts the policy that denies a packet before the description of the loss.
func (t *tracer) blame() {
	rep := &t.report
	for _, s := range rep.Policy {
		if s.denies() && !rep.Verdict.Answered {
			rep.Verdict.Text = "network policy denies it: " + s.text() + "; " + rep.Verdict.Text
			return
		}
	}
}
