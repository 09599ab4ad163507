package main

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
)

// threeMembers starts a cluster of three members, one on each machine.
func threeMembers(t *testing.T, p *pods) (machines []machine, members []*embed.Etcd, stops []func()) {
	t.Helper()
	cluster := "--initial-cluster="
	for i := range 3 {
		n := newMachine(t, "192.0.2."+strconv.Itoa(i+1))
		machines = append(machines, n)
		cluster += "etcd-" + strconv.Itoa(i) + "=" + n.peer + ","
	}
	for i, n := range machines {
		name := "etcd-" + strconv.Itoa(i)
		p.add(name, n)
		e, stop := startMember(t, n, name, filepath.Join(n.dir, name), []string{cluster[:len(cluster)-1], "--initial-cluster-state=new"})
		members, stops = append(members, e), append(stops, stop)
	}
	awaitReady(t, members...)
	return machines, members, stops
}

// TestReturnToOldData: a member moves to another machine, and later returns to the first, which still has the data of the member that was removed.
func TestReturnToOldData(t *testing.T) {
	p := &pods{}
	machines, members, stops := threeMembers(t, p)
	old := filepath.Join(machines[1].dir, "etcd-1")
	if id, err := memberID(lastLog(old)); err != nil || id != strconv.FormatUint(uint64(members[1].Server.MemberID()), 10) {
		t.Errorf("the data is of %s: %v", id, err)
	}
	stops[1]()
	moved, stopMoved := p.start(t, "etcd-1", newMachine(t, "192.0.2.4"), 3)
	awaitReady(t, moved)
	stopMoved()
	back, stopBack := p.start(t, "etcd-1", machines[1], 3)
	awaitReady(t, back)
	expectOneCluster(t, members[0], back, members[2])
	if kept, err := filepath.Glob(old + ".removed-*/member/wal/*.wal"); err != nil || len(kept) == 0 {
		t.Errorf("the old data is lost: %v", err)
	}
	stopBack()
	again, _ := p.start(t, "etcd-1", machines[1], 3)
	awaitReady(t, again)
	if again.Server.MemberID() != back.Server.MemberID() {
		t.Error("a member that is part of the cluster starts without its data")
	}
}

// TestRemovedByHand: a member that the administrator removes stays out of the cluster until its pod is replaced.
func TestRemovedByHand(t *testing.T) {
	m, _ := certified(t)
	if m.restarted {
		t.Error("the first container of a pod counts as restarted")
	}
	if err := m.certify(netip.MustParseAddr("127.0.0.1")); err != nil || !m.restarted {
		t.Errorf("the second container of a pod: restarted %v, %v", m.restarted, err)
	}
	p := &pods{}
	machines, members, stops := threeMembers(t, p)
	stops[1]()
	j := p.joiner("etcd-1", 3, machines[1].peer)
	id := strconv.FormatUint(uint64(members[1].Server.MemberID()), 10)
	if _, err := j.call(t.Context(), machines[0].client+"/v3/cluster/member/remove", map[string]any{"ID": id}); err != nil {
		t.Fatal(err)
	}
	m.common, m.name, m.members, m.dataDir = &common{log: slog.New(slog.DiscardHandler)}, "etcd-1", 3, machines[1].dir
	if _, _, err := m.data(t.Context(), j); err == nil || !strings.Contains(err.Error(), "delete the pod") {
		t.Errorf("error %v", err)
	}
	m.restarted = false
	if _, ok, err := m.data(t.Context(), j); err != nil || ok {
		t.Errorf("a new pod: data %v, error %v", ok, err)
	}
}

// TestDataWithoutAnswers: all members start at the same time, so none can say whether another is still a member.
func TestDataWithoutAnswers(t *testing.T) {
	p := &pods{}
	machines, members, stops := threeMembers(t, p)
	id := members[0].Server.Cluster().ID()
	for _, stop := range stops {
		stop()
	}
	for i, n := range machines {
		members[i], _ = p.start(t, "etcd-"+strconv.Itoa(i), n, 3)
	}
	awaitReady(t, members...)
	if got := members[0].Server.Cluster().ID(); got != id {
		t.Errorf("cluster %s, not %s", got, id)
	}
	expectOneCluster(t, members...)
}

// TestExchangedNodes: all members start at the same time, and two of them on each other's node, one of which has older data of another cluster.
func TestExchangedNodes(t *testing.T) {
	p := &pods{}
	machines, members, stops := threeMembers(t, p)
	if _, err := members[0].Server.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("a"), Value: []byte("b")}); err != nil {
		t.Fatal(err)
	}
	for _, stop := range stops {
		stop()
	}
	older := filepath.Join(machines[1].dir, "etcd-2", "member", "wal")
	if err := os.MkdirAll(older, 0o700); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(older, "0.wal")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(log, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	for i, on := range []int{0, 2, 1} {
		members[i], _ = p.start(t, "etcd-"+strconv.Itoa(i), machines[on], 3)
	}
	awaitReady(t, members...)
	expectOneCluster(t, members...)
	for _, e := range members {
		if r, err := e.Server.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte("a")}); err != nil || len(r.Kvs) != 1 {
			t.Errorf("%s has lost a key: %v", e.Config().Name, err)
		}
		// If only one member remains, it uses the directory with its name.
		m := &member{name: e.Config().Name, members: 1, dataDir: filepath.Dir(e.Config().Dir)}
		if dir, log := m.lastDir(); log == "" {
			t.Errorf("%s, alone, has no data: %q", m.name, dir)
		} else if id, err := memberID(log); err != nil || id != strconv.FormatUint(uint64(e.Server.MemberID()), 10) {
			t.Errorf("%s, alone, has the data of %s: %v", m.name, id, err)
		}
	}
}

// TestDirOfAnotherName: only directories of members are used, and none of another name by a single member.
func TestDirOfAnotherName(t *testing.T) {
	m := &member{name: "etcd-0", members: 3, dataDir: t.TempDir()}
	for _, dir := range []string{"etcd-1.removed-20260102T030405Z", "etcd-backup", "etcd-1"} {
		if got, _ := m.lastDir(); got != "" {
			t.Errorf("uses %s", got)
		}
		wal := filepath.Join(m.dataDir, dir, "member", "wal")
		if err := os.MkdirAll(wal, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(wal, "0.wal"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := m.lastDir(); got != filepath.Join(m.dataDir, "etcd-1") {
		t.Errorf("uses %q", got)
	}
	m.members = 1
	if got, _ := m.lastDir(); got != "" {
		t.Errorf("a single member uses %s", got)
	}
}

// TestNotALog: files that are not write-ahead logs have no ID.
func TestNotALog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "0.wal")
	for _, text := range []string{"", "1234567", "\xff\xff\xff\xff\xff\xff\xff\xff", "\x04\x00\x00\x00\x00\x00\x00\x84\x08\x01\x10\x00", "\x02\x00\x00\x00\x00\x00\x00\x00\x08\x01"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if id, err := memberID(file); err == nil {
			t.Errorf("%q has the ID %s", text, id)
		}
	}
}
