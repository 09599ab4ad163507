package scheduler_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
)

// An interface has a table and an address that depends on the table; both are removed with the interface. Deleting the interface is one
// operation, even if one of its items uses the other.
func TestDependentItemsGoWithTheirParent(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(t.Context(), log)
	s := scheduler.New(scheduler.Config{Jobs: jobs}, log)
	ok := func(op *scheduler.Op) { op.Done(nil) }
	parent := scheduler.Descriptor[*wrapperspb.StringValue]{
		Name: "if", Prefix: "if/", Rank: 1,
		Equal:  func(_ string, a, b *wrapperspb.StringValue) bool { return proto.Equal(a, b) },
		Create: func(op *scheduler.Op, _ string, _ *wrapperspb.StringValue) { ok(op) },
		Delete: func(op *scheduler.Op, _ string, _ *wrapperspb.StringValue) { ok(op) },
		Derive: func(key string, _ *wrapperspb.StringValue, put func(kind, itemKey string, item any)) {
			put("item", "table:"+key, "")
			put("item", "address:"+key, "table:"+key)
		},
	}
	item := scheduler.Descriptor[string]{
		Name: "item", Rank: 2, ImpliedByParent: true,
		Equal: func(_, a, b string) bool { return a == b },
		Deps: func(_, v string, add func(string)) {
			if v != "" {
				add(v)
			}
		},
		Create: func(op *scheduler.Op, _, _ string) { ok(op) },
		Delete: func(op *scheduler.Op, _, _ string) { ok(op) },
	}
	for _, err := range []error{scheduler.Register(s, parent), scheduler.Register(s, item), s.Start()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() { s.Close(); _ = jobs.Stop(time.Second) }()

	put := txn.KV{Key: "if/a", Value: wrapperspb.String("a")}
	rec, err := s.Commit(t.Context(), &txn.Txn{Values: []txn.KV{put}})
	if err != nil || len(rec.Executed) != 3 {
		t.Fatalf("create: %v\n%s", err, rec)
	}
	rec, err = s.Commit(t.Context(), &txn.Txn{Values: []txn.KV{{Key: "if/a"}}})
	if err != nil || len(rec.Executed) != 1 {
		t.Fatalf("delete: %v, want the interface alone to be deleted:\n%s", err, rec)
	}
	for _, v := range s.Status(scheduler.Filter{}) {
		if strings.HasSuffix(v.Key, "if/a") && v.State == scheduler.Configured {
			t.Errorf("%s is still configured", v.Key)
		}
	}
}
