package scheduler

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/txn"
)

// Values are removed after their replacements are created; values that must be removed before an early removal are removed before it.
func TestDeletesLast(t *testing.T) {
	m := newMock(t)
	m.last = true
	r := newRig(t, m, nil)
	with := func(names ...string) *obj {
		v := &obj{}
		for _, name := range names {
			v.Items = append(v.Items, item{Name: name})
		}
		return v
	}
	r.must(update(kv("a/1", &obj{}), kv("p/1", with("x")), kv("p/2", with("x")), kv("p/3", &obj{Deps: []string{"a/1"}})))
	for _, c := range []struct {
		change []txn.KV
		want   string
	}{
		{[]txn.KV{kv("p/1", with("y"))}, "create item:p/1:y, delete item:p/1:x"},
		{[]txn.KV{kv("p/2", nil), kv("p/4", with("x"))}, "create p/4, create item:p/4:x, delete item:p/2:x, delete p/2"},
		{[]txn.KV{kv("a/1", nil), kv("p/3", nil), kv("p/5", &obj{})}, "delete p/3, delete a/1, create p/5"},
	} {
		rec := r.must(update(c.change...))
		if got := strings.ReplaceAll(actions(rec.Executed), "\n", ", "); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
