package nodesync

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/keyval"
	"contiv.dev/vswitch/internal/servicelabel"
	"contiv.dev/vswitch/plugins/contivconf"
	controller "contiv.dev/vswitch/plugins/controller/api"
)

// plainDB offers only the methods of ClusterWideDB: its broker has no revisions.
type plainDB struct{ db *fakeDB }

// noRevisions is a broker of a database without revisions.
type noRevisions struct{ *broker }

func (n noRevisions) GetValue(ctx context.Context, key string, value proto.Message) (bool, int64, error) {
	found, _, err := n.broker.GetValue(ctx, key, value)
	return found, 0, err
}

func (p plainDB) OnConnect(callback func() error) { _ = callback() }

func (p plainDB) NewBroker(prefix string) keyval.ProtoBroker {
	return noRevisions{&broker{p.db, prefix}}
}

func (p plainDB) PutIfNotExists(key string, value []byte) (bool, error) {
	i, _, err := p.db.CommitFirst(context.Background(), cas.Change{
		If: []cas.Cond{{Key: key}}, Do: []cas.Write{{Key: key, Value: value}},
	})
	return i == 0, err
}

func (p plainDB) Close() error { return nil }

// TestPlainDatabase checks that the documented interface of a database is sufficient to claim IDs and to publish addresses.
func TestPlainDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		const count = 30
		for i := range count {
			ns := NewPlugin(UseDeps(func(d *Deps) {
				d.ServiceLabel, d.DB, d.EventLoop = servicelabel.Label(fmt.Sprintf("n%d", i)), plainDB{db}, &loop{}
			}))
			if err := ns.Init(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := ns.Close(); err != nil {
					t.Error(err)
				}
			}()
			ev := controller.NewDBResync() // has no other node
			if err := ns.Resync(ev, ev.KubeState, 1, nil); err != nil {
				t.Fatal(err)
			}
			if got := ns.GetNodeID(); got != uint32(i+1) {
				t.Errorf("ID %d, want %d", got, i+1)
			}
			if err := ns.PublishNodeIPs(ips(fmt.Sprintf("10.0.0.%d/24", i+1)), contivconf.IPv4); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := ns.ReleaseNodeID(t.Context(), "n0"); err == nil && i > 0 {
				t.Error("an ID was released without transactions")
			} else if i == 0 && !errors.Is(err, errOwnNode) {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		for i := range count {
			if got := db.get(t, uint32(i+1)); got.GetName() != fmt.Sprintf("n%d", i) || len(got.GetIpAddresses()) != 1 {
				t.Errorf("record %d: %v", i+1, got)
			}
		}
	})
}
