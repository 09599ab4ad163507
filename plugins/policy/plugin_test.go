package policy

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/infra"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/controller/api"
)

// reported holds the reports to users, by object.
type reported struct {
	now   map[string][]problem.Problem
	calls int
}

func (t *reported) Set(o problem.Object, list []problem.Problem, _ bool) {
	t.calls++
	key := fmt.Sprintf("%s %s/%s %s", o.Kind, o.Namespace, o.Name, o.UID)
	if delete(t.now, key); len(list) > 0 {
		t.now[key] = list
	}
}

func policy(name, uid string) *model.Policy {
	return &model.Policy{Namespace: "ns", Name: name, Uid: uid}
}

// TestPoliciesAreNotIgnoredInSilence checks that every policy is its own problem, the log has one line, and a problem that was reported is
// not reported again.
func TestPoliciesAreNotIgnoredInSilence(t *testing.T) {
	var log bytes.Buffer
	users := &reported{now: map[string][]problem.Problem{}}
	p := New(Deps{PluginDeps: infra.PluginDeps{PluginName: "policy", Log: slog.New(slog.NewTextHandler(&log, nil))},
		ServiceLabel: servicelabel.Label("n1"), Problems: users})
	data := api.KubeStateData{model.PolicyKeyword: {}}
	put := func(pol *model.Policy) *api.KubeStateChange {
		key := model.Key(model.PolicyKeyword, pol.Namespace, pol.Name)
		ev := &api.KubeStateChange{Resource: model.PolicyKeyword, Key: key, PrevValue: data[model.PolicyKeyword][key], NewValue: pol}
		data[model.PolicyKeyword][key] = pol
		return ev
	}
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(policy("a", "1"))
	step(p.Resync(api.NewDBResync(), data, 1, nil))
	for _, ev := range []*api.KubeStateChange{put(policy("b", "2")), put(policy("b", "2"))} {
		if !p.HandlesEvent(ev) {
			t.Error("does not handle policies")
		}
		_, err := p.Update(ev, nil)
		step(err)
	}
	calls := users.calls
	step(p.Resync(api.NewDBResync(), data, 2, nil))
	if users.calls != calls {
		t.Errorf("told %d times for nothing", users.calls-calls)
	}
	if len(users.now) != 2 || users.now["NetworkPolicy ns/a 1"][0].Reason != "NotEnforced" {
		t.Errorf("told: %v", users.now)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	_, err := p.Update(put(policy("b", "3")), nil) // created again
	step(err)
	delete(data[model.PolicyKeyword], model.Key(model.PolicyKeyword, "ns", "a"))
	step(p.Resync(api.NewDBResync(), data, 3, nil))
	if len(users.now) != 1 || users.now["NetworkPolicy ns/b 3"] == nil {
		t.Errorf("told: %v", users.now)
	}
}
