package podmanager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/test/testbed/poll"
)

// agentEnv makes the test binary an agent in the directory that the variable contains. While there is a file stall in it, events block
// after a part of the work: addresses are recorded, and the file reached is created.
const agentEnv = "PODMANAGER_TEST_AGENT"

func agentMain(dir string) int {
	n := &node{dir: dir}
	if err := n.start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	n.net.setFail(func(ev api.Event) error {
		if _, err := os.Stat(filepath.Join(dir, "stall")); err != nil {
			return nil
		}
		if ev, ok := ev.(*AddPod); ok {
			err := n.net.add(ev)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "reached"), nil, 0o600)
			}
			if err != nil {
				return err
			}
		}
		select {}
	})
	err := <-n.jobs.Failed() // blocks until a job fails or the process is killed
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// startAgent starts an agent that can be killed.
func (n *node) startAgent() (kill func()) {
	n.t.Helper()
	self, err := os.Executable()
	if err != nil {
		n.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), agentEnv+"="+n.dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	n.t.Cleanup(kill)
	return kill
}

func (n *node) waitFor(file string) {
	n.t.Helper()
	poll.Succeeds(n.t, "file "+file, 20*time.Second, func() error {
		_, err := os.Stat(filepath.Join(n.dir, file))
		return err
	})
}

// stored returns the store on disk.
func (n *node) stored() string {
	n.t.Helper()
	files, err := os.ReadDir(filepath.Join(n.dir, "pods"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		s := &store{dir: filepath.Join(n.dir, "pods")}
		rec, err := s.load(filepath.Join(s.dir, f.Name()))
		if err != nil {
			n.t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		got = append(got, fmt.Sprintf("%s=%v", rec.IfName, rec.Addresses))
	}
	return strings.Join(got, " ")
}

// TestAgentIsKilledDuringAdd: SIGKILL between the recording of the address and the response. The runtime, which waits for its ADD, is not
// affected, and existing pods keep their addresses.
func TestAgentIsKilledDuringAdd(t *testing.T) {
	n := prepareNode(t)
	kill := n.startAgent()
	kept, gone, rt := n.sandbox("kept"), n.sandbox("gone"), n.sandbox("a")
	kept.IfName, gone.IfName, rt.IfName = "kept", "gone", "new"
	before := n.add(kept)
	n.add(gone)

	stall := filepath.Join(n.dir, "stall")
	if err := os.WriteFile(stall, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		addr string
		err  error
	}
	got := make(chan outcome, 1)
	go func() {
		res, err := n.cni.AddNetworkList(t.Context(), n.list, rt)
		got <- outcome{fmt.Sprint(res), err}
	}()
	n.waitFor("reached")
	kill()
	if s := n.stored(); !strings.Contains(s, "new=[10.1.0.4/32]") {
		t.Errorf("the address was not recorded: %s", s)
	}
	n.removeSandbox(gone.NetNS)
	if err := os.Remove(stall); err != nil {
		t.Fatal(err)
	}
	n.startAgent()
	if o := <-got; o.err != nil || !strings.Contains(o.addr, "10.1.0.4") {
		t.Errorf("ADD gave %s, %v", o.addr, o.err)
	}
	if s := n.stored(); strings.Contains(s, "gone") || strings.Count(s, "=") != 2 {
		t.Errorf("store has %s", s)
	}
	if after := n.add(kept); after.IPs[0].Address.String() != before.IPs[0].Address.String() {
		t.Errorf("address before %s, after %s", before.IPs[0].Address.String(), after.IPs[0].Address.String())
	}
	n.del(gone)
	n.del(rt)
	n.del(kept)
	if s := n.stored(); s != "" {
		t.Errorf("store has %s", s)
	}
}

// TestServeEndsWithItsJob checks that the server is a job that stops in time and leaves no socket.
func TestServeEndsWithItsJob(t *testing.T) {
	r := newRig(t)
	r.pm.cfg.Socket = filepath.Join(t.TempDir(), "run", "cni.sock")
	jobs := lifecycle.NewGroup(t.Context(), r.pm.Logger())
	jobs.Go("cni", func(ctx context.Context) error { return r.pm.Serve(ctx, Checks{}) })
	for {
		if _, err := os.Stat(r.pm.cfg.Socket); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := jobs.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(r.pm.cfg.Socket); err == nil {
		t.Error("socket is left behind")
	}
}
