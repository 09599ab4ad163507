package podmanager

import (
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"contiv.dev/vswitch/plugins/controller"
	"contiv.dev/vswitch/plugins/controller/api"
)

func TestAttachmentsSurviveARestart(t *testing.T) {
	r := newRig(t)
	r.add("c1", "web")
	r.add("c2", "db")
	before := r.pm.LocalAttachments()
	r.restart()
	if after := r.pm.LocalAttachments(); !reflect.DeepEqual(before, after) {
		t.Errorf("before %v, after %v", before, after)
	}
	r.consistent()
	r.add("c3", "new")
	if all := r.pm.LocalAttachments(); all[2].ID.ContainerID != "c3" || all[2].Addresses[0] == all[0].Addresses[0] {
		t.Errorf("attachments %v", all)
	}
	if res := r.add("c1", "web"); res.IPs[0].Address != before[0].Addresses[0] {
		t.Errorf("the address of c1 has changed to %v", res.IPs)
	}
	r.consistent()
}

func TestGoneSandboxesAreDropped(t *testing.T) {
	r := newRig(t)
	for _, c := range []string{"stays", "gone", "other", "hidden"} {
		r.add(c, c)
	}
	// The namespace was visible when it was added, but now the agent's container has no such mount.
	rec := newRecord(r.pm.lookup(AttachmentID{"hidden", "eth0"}), "boot1")
	rec.Netns = "/hidden/netns"
	r.writeRecord(rec)
	r.ns.set("/run/netns/gone", 0)
	r.ns.set("/run/netns/other", 12345)
	r.restart()
	r.consistent()
	var left []string
	for _, a := range r.pm.LocalAttachments() {
		left = append(left, a.ID.ContainerID)
	}
	if strings.Join(left, " ") != "stays hidden" {
		t.Errorf("left %v", left)
	}
}

// TestResyncDropsGoneSandboxes: a resync of the running agent configures only pods whose sandboxes exist.
func TestResyncDropsGoneSandboxes(t *testing.T) {
	r := newRig(t)
	for _, c := range []string{"stays", "gone", "other"} {
		r.add(c, c)
	}
	r.ns.set("/run/netns/gone", 0)
	r.ns.set("/run/netns/other", 12345)
	left := func() (ids string) {
		for _, a := range r.pm.LocalAttachments() {
			ids += a.ID.ContainerID + " "
		}
		return ids
	}
	for _, step := range []struct {
		event api.Event
		want  string
	}{{&controller.VerificationResync{}, "stays gone other "}, {api.NewDBResync(), "stays "}} {
		if err := r.pm.Resync(step.event, nil, 2, nil); err != nil {
			t.Fatal(err)
		}
		if left() != step.want {
			t.Errorf("after %s: left %s, want %s", step.event.GetName(), left(), step.want)
		}
	}
	if err := r.net.Resync(nil, nil, 2, nil); err != nil {
		t.Fatal(err)
	}
	r.consistent()
	r.del("gone", "gone")
	r.add("other", "other")
	r.restart()
	r.consistent()
	if left() != "stays other " {
		t.Errorf("after a restart: left %s", left())
	}
}

func (r *rig) writeRecord(rec *record) {
	r.t.Helper()
	data, err := json.Marshal(rec)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, fileName(rec.attachment().ID)), data, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestInaccessibleNamespaceIsKept(t *testing.T) {
	r := newRig(t)
	req := addReq("c1", "web")
	req.Netns = "/hidden/c1" // the agent does not have access to it
	if _, err := r.do(req); err != nil {
		t.Fatal(err)
	}
	r.restart()
	if len(r.pm.LocalAttachments()) != 1 {
		t.Error("dropped")
	}
}

func TestRebootDropsEverything(t *testing.T) {
	r := newRig(t)
	r.add("c1", "web")
	r.ns.boot = "boot2"
	r.restart()
	r.consistent()
	if n := len(r.pm.LocalAttachments()); n != 0 {
		t.Errorf("%d attachments", n)
	}
}

func TestCorruptFilesArePutAside(t *testing.T) {
	r := newRig(t)
	r.add("good", "web")
	valid, err := os.ReadFile(filepath.Join(r.dir, "good@eth0.json"))
	if err != nil {
		t.Fatal(err)
	}
	corrupt := map[string]string{
		"empty@eth0.json":     "",
		"half@eth0.json":      string(valid[:len(valid)/2]),
		"list@eth0.json":      "[]",
		"null@eth0.json":      "null",
		"moved@eth0.json":     string(valid), // contains another ID
		"ancient@eth0.json":   `{"version":0,"containerID":"ancient","ifName":"eth0","netns":"/n","podName":"x","seq":1}`,
		"nopod@eth0.json":     `{"version":1,"containerID":"nopod","ifName":"eth0","netns":"/n","seq":1}`,
		"address@eth0.json":   `{"version":1,"containerID":"address","ifName":"eth0","netns":"/n","podName":"x","addresses":["10.1.1.300/32"]}`,
		"noaddress@eth0.json": `{"version":1,"containerID":"noaddress","ifName":"eth0","netns":"/n","podName":"x","addresses":[""]}`,
		"escape@eth0.json":    `{"version":1,"containerID":"../escape","ifName":"eth0","netns":"/n","podName":"x"}`,
	}
	for name, content := range corrupt {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"dead@eth0.json.tmp", "README"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(r.dir, "dir@eth0.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.restart()
	if all := r.pm.LocalAttachments(); len(all) != 1 || all[0].ID.ContainerID != "good" {
		t.Errorf("attachments %v", all)
	}
	for name := range corrupt {
		if _, err := os.Stat(filepath.Join(r.dir, name+corruptSuffix)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "dead@eth0.json.tmp")); err == nil {
		t.Error("unfinished file is left")
	}
	r.restart() // the quarantined files have no effect
	r.add("half", "again")
}

// TestRecordThatNoAddMayRequest: an interface that an earlier agent attached stays, also if this agent rejects its name in an ADD.
func TestRecordThatNoAddMayRequest(t *testing.T) {
	r := newRig(t)
	req := addReq("c1", "web")
	req.IfName = "lo"
	if err := req.Validate(); err == nil {
		t.Fatal("an ADD of lo is valid")
	}
	r.writeRecord(&record{Version: storeVersion, ContainerID: "c1", IfName: "lo", Netns: req.Netns, PodName: "web", BootID: r.ns.boot})
	r.restart()
	if all := r.pm.LocalAttachments(); len(all) != 1 || all[0].ID.IfName != "lo" {
		t.Errorf("attachments %v", all)
	}
}

// TestRecordOfNewerAgent: after a downgrade the record of a running pod stays, and the agent does not start, because without the record it would
// remove the pod's interface. A reboot ends the pod, and so the record.
func TestRecordOfNewerAgent(t *testing.T) {
	s := &store{dir: t.TempDir(), bootID: "boot1", log: slog.New(slog.DiscardHandler)}
	file := filepath.Join(s.dir, "future@eth0.json")
	if err := os.WriteFile(file, []byte(`{"version":99,"containerID":{"id":"future"},"bootID":"boot1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := s.loadAll()
		if err == nil {
			t.Fatal("the agent starts without the record")
		}
		for _, want := range []string{file, "newer version of the agent", "version 99", "upgrade the agent"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(file) {
			t.Fatalf("files %v, %v", entries, err)
		}
	}
	s.bootID = "boot2"
	if all, err := s.loadAll(); err != nil || len(all) > 0 {
		t.Errorf("after a reboot: %v, %v", all, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the record of a pod of an earlier boot stays")
	}
}

func TestSetAddressesOfUnknownPod(t *testing.T) {
	r := newRig(t)
	if err := r.pm.SetAddresses(AttachmentID{"c9", "eth0"}, nil); err == nil || !strings.Contains(err.Error(), "c9/eth0") {
		t.Errorf("got %v", err)
	}
}

// TestEventsOfOthers: tests of other plugins push events without numbers.
func TestEventsOfOthers(t *testing.T) {
	r := newRig(t)
	ev := NewAddPod(&Attachment{ID: AttachmentID{"c1", "eth0"}, Pod: PodID{Name: "p"}, Netns: "/n"})
	if err := r.loop.PushEvent(ev); err != nil {
		t.Fatal(err)
	}
	if err := <-ev.Result(); err != nil {
		t.Fatal(err)
	}
	a, ok := r.pm.Current(PodID{Name: "p"})
	if !ok || a.Seq == 0 || len(a.Addresses) != 1 {
		t.Errorf("attachment %+v", a)
	}
	del := NewDeletePod(a)
	if err := r.loop.PushEvent(del); err != nil {
		t.Fatal(err)
	}
	if err := <-del.Result(); err != nil || len(r.pm.LocalAttachments()) != 0 {
		t.Errorf("%v, %v", err, r.pm.LocalAttachments())
	}
	r.consistent()
}

func TestRevertOfWhatWasNotBegun(t *testing.T) {
	r := newRig(t)
	r.add("c1", "web")
	if err := r.pm.Revert(NewAddPod(r.pm.LocalAttachments()[0])); err != nil {
		t.Fatal(err)
	}
	if err := r.pm.Revert(api.NewDBResync()); err != nil {
		t.Fatal(err)
	}
	r.consistent()
}

func FuzzRecord(f *testing.F) {
	s := &store{dir: f.TempDir(), bootID: "b", log: slog.New(slog.DiscardHandler)}
	a := &Attachment{ID: AttachmentID{"c1", "eth0"}, Pod: PodID{"ns", "p"}, Netns: "/n", NetnsInode: 5, MTU: 9, Seq: 3,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.1.1/32"), netip.MustParsePrefix("fd00::1/128")}}
	if err := s.write(a); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(s.dir, "c1@eth0.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("c1@eth0.json", data)
	f.Add("@.json", []byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		rec, err := parseRecord(name, data)
		if err != nil {
			return
		}
		if fileName(rec.attachment().ID) != name || strings.Contains(name, "/") {
			t.Errorf("%q accepted as %v", name, rec.attachment().ID)
		}
	})
}
