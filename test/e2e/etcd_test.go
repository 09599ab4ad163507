package e2e

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/test/testbed"
)

// etcd is the operator's etcd: outside of the agent, on a socket, which is reachable from the node's namespace.
type etcd struct {
	t      *testing.T
	conf   clusterdb.Config
	server *clusterdb.Embedded
}

func newEtcd(t *testing.T) *etcd {
	e := &etcd{t: t, conf: clusterdb.Config{Embedded: clusterdb.EmbeddedConfig{DataDir: t.TempDir()}}}
	t.Cleanup(e.stop)
	return e
}

// endpoint returns the setup with etcd's address, which is known before etcd runs.
func (e *etcd) endpoint() setup {
	return args("--etcd-endpoints=unix://" + filepath.Join(e.conf.Embedded.DataDir, "etcd.sock"))
}

func (e *etcd) start(r *rig) {
	e.t.Helper()
	server, err := clusterdb.StartEmbedded(r.ctx, e.conf, slog.New(slog.DiscardHandler))
	r.must(err)
	e.server = server
}

func (e *etcd) stop() {
	if e.server != nil {
		e.server.Close()
		e.server = nil
	}
}

// TestEtcdAway checks that a node without an ID waits for etcd and reports it; a node that has one continues
// without etcd.
func TestEtcdAway(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, fake, linux}, func(t *testing.T, m mode) {
		db := newEtcd(t)
		r := newNode(t, m, db.endpoint())
		r.must(r.LaunchAgent(r.ctx))
		r.within(15*time.Second, "the agent says that it waits for etcd", func() error {
			_, err := r.Get(r.ctx, "/readiness")
			if err == nil {
				return errors.New("it is ready without an ID")
			}
			if !strings.Contains(err.Error(), "etcd") {
				return fmt.Errorf("it does not name etcd: %w", err)
			}
			return nil
		})
		if _, err := r.Get(r.ctx, "/liveness"); err != nil {
			t.Errorf("an agent that waits would be restarted: %v", err)
		}
		r.wantCode(r.CNI.Status(r.ctx), codeNotNow, "etcd")
		db.start(r)
		r.waitReady()
		r.base = r.takeBaseline()
		pods := r.add("a", "b")
		db.stop()
		pods = append(pods, r.add("while-away")...)
		r.onlyPods(pods)
		if _, err := r.Get(r.ctx, "/readiness"); err != nil {
			t.Errorf("a node whose etcd goes away is not ready any more: %v", err)
		}
		if !m.real {
			return // the fake VPP would end with the agent
		}
		r.restartsQuietly(pods)
		pods = append(pods, r.add("after-restart")...)
		r.onlyPods(pods)
		r.must(r.ring(5*time.Second, pods))
		db.start(r)
		pods = append(pods, r.add("etcd-is-back")...)
		r.must(r.ring(5*time.Second, pods))
		r.restartsQuietly(pods)
		r.sameAddresses(pods)
	})
}

// sameAddresses checks that the ID, and with it every address, is unchanged.
func (r *rig) sameAddresses(pods []*testbed.Pod) {
	r.t.Helper()
	r.onlyPods(pods)
	for _, p := range pods {
		r.check(r.CNI.Check(r.ctx, p))
	}
}
