package e2e

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/daemon"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestStopIsBounded checks that SIGTERM ends the agent within daemon.StopLimit, whatever it waits for, and that its log names the part that was late.
// The next agent completes the pending operations.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		modes []mode
		hang  func(r *rig, file string) (undo func())
		names string // the parts that the log reports as late; empty: none
	}{
		{"VPP does not respond", []mode{tap, veth}, (*rig).freezeVPP, "controller did not shut down within 3s; it has been handling "},
		{"tools do not end", []mode{iptables}, (*rig).hangTools, "controller did not shut down within 3s; it has been handling "},
		{"slow readers", []mode{fake, linux}, (*rig).fillREST, ""},
		{"silent CNI callers", []mode{fake, linux}, (*rig).silentCallers, ""},
	} {
		t.Run(strings.ReplaceAll(tc.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			each(t, tc.modes, func(t *testing.T, m mode) {
				matrix.Only(t, tap.name, linux.name, fake.name)
				hang := filepath.Join(t.TempDir(), "hang")
				r := newRig(t, m, slowTools(t, hang))
				r.add("before")
				undo := tc.hang(r, hang)
				added := make(chan error, 4)
				for _, p := range []string{"a", "b", "c", "d"} {
					pod := r.pod(p)
					go func() { _, err := r.CNI.Add(r.ctx, pod); added <- err }()
				}
				time.Sleep(200 * time.Millisecond) // the agent has started the operations
				took := r.terminate()
				undo()
				for range 4 {
					<-added // the ADD may have failed
				}
				log := r.LogTail(1000)
				if late := strings.Contains(log, "did not s"); tc.names == "" && late || !strings.Contains(log, tc.names) {
					t.Errorf("the log does not have %q, or has something that is late, after %s:\n%s", tc.names, took, log)
				}
				if m != fake {
					r.start()
					r.add("after")
				}
			})
		})
	}
}

// TestStopWithoutEtcd checks that an agent ends that waits for an etcd that accepts connections and never answers.
func TestStopWithoutEtcd(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, fake, linux}, func(t *testing.T, m mode) {
		path := filepath.Join(t.TempDir(), "etcd.sock")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		r := newNode(t, m, args("--etcd-endpoints=unix://"+path))
		r.must(r.LaunchAgent(r.ctx))
		r.within(15*time.Second, "the agent says that it waits for etcd", func() error {
			_, err := r.Get(r.ctx, "/readiness")
			if err == nil || !strings.Contains(err.Error(), "etcd") {
				return errors.New("not yet")
			}
			return nil
		})
		r.terminate()
	})
}

// TestStopWhileStarting checks that SIGTERM ends an agent at any time during its start.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, fake, linux}, func(t *testing.T, m mode) {
		r := newNode(t, m)
		for after := time.Duration(0); after < 600*time.Millisecond; after += 60 * time.Millisecond {
			r.must(r.LaunchAgent(r.ctx))
			time.Sleep(after)
			r.terminate()
		}
		r.start()
	})
}

// terminate ends the agent by SIGTERM, within its limit.
func (r *rig) terminate() time.Duration {
	r.t.Helper()
	begun := time.Now()
	r.check(r.Agent.Stop(daemon.StopLimit))
	took := time.Since(begun)
	r.t.Logf("the agent ended after %s", took.Round(time.Millisecond))
	return took
}

// freezeVPP stops VPP's process.
func (r *rig) freezeVPP(string) (undo func()) {
	r.must(r.VPP.Freeze())
	return func() { r.must(r.VPP.Thaw()) }
}

// slowTools gives the agent iptables commands that hang while the file hang exists.
func slowTools(t *testing.T, hang string) setup {
	dir := t.TempDir()
	script := "#!/bin/sh\nwhile [ -e \"$HANG\" ]; do sleep 0.1; done\nPATH=" + os.Getenv("PATH") + "\nexec \"${0##*/}\" \"$@\"\n"
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, variant := range []string{"-", "-nft-", "-legacy-"} {
			for _, tool := range []string{"restore", "save"} {
				if err := os.WriteFile(filepath.Join(dir, name+variant+tool), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return func(o *testbed.NodeOptions) {
		o.AgentEnv = append(o.AgentEnv, "PATH="+dir+":"+os.Getenv("PATH"), "HANG="+hang)
	}
}

// hangTools makes the iptables commands hang.
func (r *rig) hangTools(hang string) (undo func()) {
	r.must(os.WriteFile(hang, nil, 0o600))
	return func() { r.must(os.Remove(hang)) }
}

// fillREST opens connections on both of the agent's listeners that read no answers.
func (r *rig) fillREST(string) (undo func()) {
	tcp := r.slowReaders("tcp", "127.0.0.1:9999", "/scheduler/dump")
	unix := r.slowReaders("unix", r.RESTSocket(), "/controller/event-history")
	return func() { tcp(); unix() }
}

// silentCallers opens connections to the CNI socket that send no request.
func (r *rig) silentCallers(string) (undo func()) {
	var conns []net.Conn
	for range 50 {
		c, err := net.Dial("unix", r.CNISocket())
		r.must(err)
		conns = append(conns, c)
	}
	return func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
}
