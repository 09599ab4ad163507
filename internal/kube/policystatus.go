package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

const (
	// conditionAccepted is the condition of ClusterNetworkPolicies that contiv writes. Other implementations have conditions of other types.
	conditionAccepted = "contiv.dev/Accepted"
	// maxConditionMessage is the longest message that the API server accepts.
	maxConditionMessage = 32768

	clusterPolicies       = "clusternetworkpolicies"
	policyStatusDelay     = time.Second // changes within this time are written together
	policyStatusPageLimit = "500"
)

// PolicyStatusInterval is the usual PolicyStatusDeps.Interval.
const PolicyStatusInterval = 30 * time.Second

// PolicyStatusDeps are the dependencies of a PolicyStatus.
type PolicyStatusDeps struct {
	Client *Client
	Log    *slog.Logger
	// Writes reports whether this process is the one that writes conditions.
	Writes func() bool
	// Large returns, by policy name, why the policy has sets over the limit. The function is nil where that is not known.
	Large func() map[string]string
	// Interval is the time between comparisons of the conditions without a Touch.
	Interval time.Duration
}

// PolicyStatus writes a condition into ClusterNetworkPolicies that reports whether the whole policy is understood and can be enforced as written.
// Only one process of the cluster does so at a time.
type PolicyStatus struct {
	PolicyStatusDeps
	wake   chan struct{}
	failed bool // the failure has been logged
}

// NewPolicyStatus returns a PolicyStatus, which sends no request before Run.
func NewPolicyStatus(deps PolicyStatusDeps) *PolicyStatus {
	return &PolicyStatus{PolicyStatusDeps: deps, wake: make(chan struct{}, 1)}
}

// Touch reports that a policy, or the process that writes, has changed. It may be called from any goroutine.
func (s *PolicyStatus) Touch() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run writes conditions until ctx ends.
func (s *PolicyStatus) Run(ctx context.Context) error {
	tick := time.NewTicker(s.Interval)
	defer tick.Stop()
	for {
		if s.Writes() {
			s.round(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-s.wake:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(policyStatusDelay):
			}
		}
	}
}

func (s *PolicyStatus) round(ctx context.Context) {
	err := s.writeAll(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil && !s.failed:
		s.failed = true
		s.Log.Warn("conditions of ClusterNetworkPolicies cannot be written; retrying", "error", err)
	case err == nil && s.failed:
		s.failed = false
		s.Log.Info("conditions of ClusterNetworkPolicies are written again")
	}
}

func (s *PolicyStatus) writeAll(ctx context.Context) error {
	group := s.Client.groups[schema.GroupVersion(npapi.GroupVersion)]
	var failed []error
	var large map[string]string
	if s.Large != nil {
		large = s.Large()
	}
	for token := ""; ; {
		var list npapi.ClusterNetworkPolicyList
		get := group.Get().Resource(clusterPolicies).Param("limit", policyStatusPageLimit)
		if token != "" {
			get = get.Param("continue", token)
		}
		err := get.Do(ctx).Into(&list)
		if apierrors.IsNotFound(err) {
			return nil // the cluster does not have the API
		}
		if err != nil {
			return fmt.Errorf("list ClusterNetworkPolicies: %w", err)
		}
		for i := range list.Items {
			p := &list.Items[i]
			if !meta.SetStatusCondition(&p.Status.Conditions, accepted(p, large[p.Name])) {
				continue
			}
			err := group.Put().Resource(clusterPolicies).Name(p.Name).SubResource("status").Body(p).Do(ctx).Error()
			// If the policy was deleted or changed in the meantime, the next round handles it.
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				failed = append(failed, fmt.Errorf("status of ClusterNetworkPolicy %s: %w", p.Name, err))
			}
		}
		if token = list.Continue; token == "" {
			return errors.Join(failed...)
		}
	}
}

// accepted returns the condition that a policy should have. large is the reason why it has sets over the limit; empty: it has none.
func accepted(p *npapi.ClusterNetworkPolicy, large string) metav1.Condition {
	c := metav1.Condition{Type: conditionAccepted, Status: metav1.ConditionTrue, Reason: "Accepted", ObservedGeneration: p.Generation,
		Message: "all parts of the policy are supported"}
	problems := ConvertClusterPolicy(p).GetProblems()
	switch {
	case len(problems) > 0:
		c.Reason = "NotUnderstood"
	case large != "":
		c.Reason = "SetTooLarge"
	default:
		return c
	}
	if large != "" {
		problems = append(slices.Clone(problems), large)
	}
	c.Status, c.Message = metav1.ConditionFalse, strings.Join(problems, "; ")
	c.Message = strings.ToValidUTF8(c.Message[:min(len(c.Message), maxConditionMessage)], "")
	return c
}
