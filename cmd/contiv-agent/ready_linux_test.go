package main

import (
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/filelock"
)

// TestReadyWithCNISocket: an agent is not ready before contiv-cni can connect to it, for example while the previous agent still has the
// socket. Otherwise the kubelet would start pods that fail.
func TestReadyWithCNISocket(t *testing.T) {
	c := newWindowsCluster(t, "nooverlay")
	r := c.windowsNode(1)
	r.stop()
	unlock, err := filelock.Try(filepath.Join(r.home, "r", "cni.sock.lock"))
	c.must(err)
	defer unlock()
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
	unlock()
	c.eventually("ready", r.agent.ready)
}
