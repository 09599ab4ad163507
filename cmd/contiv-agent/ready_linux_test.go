package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadyWithCNISocket: an agent is not ready before contiv-cni can connect to it, such as while the agent before it still holds the
// socket. The kubelet would send pods that fail.
func TestReadyWithCNISocket(t *testing.T) {
	c := newWindowsCluster(t, "nooverlay")
	r := c.windowsNode(1)
	r.stop()
	before, err := os.OpenFile(filepath.Join(r.home, "r", "cni.sock.lock"), os.O_RDWR, 0)
	c.must(err)
	defer before.Close()
	c.must(syscall.Flock(int(before.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	c.must(r.launch())
	c.eventually("ready but for the socket", func() error {
		err := r.agent.ready()
		if err == nil {
			t.Fatal("ready while another process holds the CNI socket")
		}
		if strings.Contains(err.Error(), "CNI socket") {
			return nil
		}
		return err
	})
	c.must(before.Close())
	c.eventually("ready", r.agent.ready)
}
