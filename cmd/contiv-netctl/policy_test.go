package main

import (
	"fmt"
	"reflect"
	"testing"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
)

// TestJoinPolicies: a policy selects pods of several nodes, and is enforced if each of them enforces it.
func TestJoinPolicies(t *testing.T) {
	got := joinPolicies([]client.Answer[[]policyRow]{
		{Node: "n1", Value: []policyRow{{Namespace: "b", Name: "p", Enforced: true, Endpoints: []string{"b/x"}}, {Namespace: "a", Name: "q", Enforced: true}}},
		{Node: "n2", Err: fmt.Errorf("away")},
		{Node: "n3", Value: []policyRow{{Namespace: "b", Name: "p", Endpoints: []string{"b/y"}}}},
	})
	want := []policyRow{{Namespace: "a", Name: "q", Enforced: true}, {Namespace: "b", Name: "p", Endpoints: []string{"b/x", "b/y"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestWhyTable: each direction comes from the node that has it. A connection is denied if one direction is.
func TestWhyTable(t *testing.T) {
	allow, deny := &whyAnswer{Pod: "a/x", Action: "allow"}, &whyAnswer{Pod: "a/y", Action: "deny"}
	rows := joinWhy([]client.Answer[[]whyRow]{
		{Node: "n1", Value: []whyRow{{Source: "10.0.0.1", Dest: "10.0.0.2", Egress: allow}}},
		{Node: "n2", Value: []whyRow{{Source: "10.0.0.1", Dest: "10.0.0.2", Ingress: deny}}},
	})
	if len(rows) != 1 || rows[0].Egress != allow || rows[0].Ingress != deny {
		t.Fatalf("got %+v", rows)
	}
	if _, denied := whyTable(rows); !denied {
		t.Error("not denied, though ingress is")
	}
	rows[0].Ingress = nil
	if table, denied := whyTable(rows); denied || len(table.Rows) != 2 {
		t.Errorf("denied %t, %+v", denied, table)
	}
}
