package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestPodChangesItsInterface: a pod with CAP_NET_ADMIN that renames, replaces or removes its interface harms its own connection only. The node stays
// ready, although every resync fails to configure the pod, and the pod can be deleted.
func TestPodChangesItsInterface(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, veth, linux}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		path := filepath.Join(t.TempDir(), "controller.conf")
		conf := "delayAfterErrorHealing: 50ms\nmaxHealingDelay: 50ms\ndelayRetry: 50ms\nmaxRetryAttempts: 2\nenableExpBackoffRetry: false\n"
		if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		r := newRig(t, m, args("--controller-config="+path))
		good := r.add("good")[0]
		for name, change := range map[string]string{
			"renamed":  "ip link set eth0 down; ip link set eth0 name mine",
			"replaced": "ip link set eth0 down; ip link set eth0 name mine; ip link add eth0 type veth peer name end",
			"deleted":  "ip link del eth0",
			"dummies":  "ip link del eth0; ip link add eth0 type veth peer name end",
		} {
			bad := r.add("bad-" + name)[0]
			if out, err := bad.Run(r.ctx, "sh", "-c", change); err != nil {
				t.Fatalf("%s: %v: %s", name, err, out)
			}
			for range 5 {
				_, _ = r.Post(r.ctx, "/controller/resync") // its error is that of the pod
				r.staysReady(400*time.Millisecond, name)
			}
			r.check(r.CNI.Check(r.ctx, good))
			r.reaches(r.Namespace, good.IPs[0].String())
			r.must(r.CNI.Del(r.ctx, bad))
		}
		if log := r.LogTail(400); strings.Contains(log, "healing has failed") {
			r.check(errors.New(log))
		}
	})
}

// staysReady checks that the node is ready all the time.
func (r *rig) staysReady(d time.Duration, what string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, d)
	defer cancel()
	var unready error
	_ = poll.Until(ctx, 20*time.Millisecond, func() error {
		if text, err := r.Get(r.ctx, "/readiness"); err != nil {
			unready = fmt.Errorf("%s: the node is not ready: %w: %s", what, err, text)
			return nil
		}
		return errors.New("it is ready so far")
	})
	r.must(unready)
}
