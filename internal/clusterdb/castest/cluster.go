package castest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"contiv.dev/vswitch/internal/clusterdb"
)

// readyTimeout bounds the start of the members.
const readyTimeout = 30 * time.Second

// Cluster is an etcd cluster in the process of the test, on loopback and without syncing to disk.
type Cluster struct {
	t       testing.TB
	dir     string
	members []*member
	backups int

	// OperationTimeout is the timeout of the clients that Open creates from now on.
	OperationTimeout time.Duration
}

type member struct {
	name         string
	client, peer url.URL
	etcd         *embed.Etcd // nil when it is stopped
}

// NewCluster starts n members and stops them at the end of the test.
func NewCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir(), OperationTimeout: 3 * time.Second}
	urls := freeURLs(t, claimAddress(t), 2*n)
	for i := range n {
		c.members = append(c.members, &member{name: fmt.Sprintf("m%d", i), client: urls[2*i], peer: urls[2*i+1]})
	}
	t.Cleanup(c.StopAll)
	c.StartAll()
	return c
}

// claimPort is below the ports that the kernel chooses. A socket that listens on it claims the whole address.
const claimPort = 20000

// claimAddress returns a loopback address that no other cluster has, in this process or another, until the end of the test. On 127.0.0.1, another
// process would soon take the port of a stopped member: every connection needs a port, even the connection of a client that tries to reach the
// member.
func claimAddress(t testing.TB) string {
	t.Helper()
	var err error
	for range 100 {
		r := rand.Uint32()
		addr := fmt.Sprintf("127.%d.%d.%d", 64+r>>16&0x3f, r>>8&0xff, r&0xff)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("%s:%d", addr, claimPort)); err == nil {
			t.Cleanup(func() { _ = l.Close() })
			return addr
		}
	}
	t.Fatal(err)
	return ""
}

// freeURLs returns URLs with ports of an address on which nothing listens. All ports are held until the last one is chosen, so that they differ.
func freeURLs(t testing.TB, address string, n int) []url.URL {
	t.Helper()
	var out []url.URL
	for range n {
		l, err := net.Listen("tcp", address+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		out = append(out, url.URL{Scheme: "http", Host: l.Addr().String()})
	}
	return out
}

// Endpoints returns the addresses of all members, running or not.
func (c *Cluster) Endpoints() []string {
	var out []string
	for _, m := range c.members {
		out = append(out, m.client.Host)
	}
	return out
}

// StartAll starts the members that do not run and waits until they serve clients.
func (c *Cluster) StartAll() {
	c.t.Helper()
	for _, m := range c.members {
		if m.etcd == nil {
			c.launch(m)
		}
	}
	for _, m := range c.members {
		c.await(m)
	}
}

func (c *Cluster) launch(m *member) {
	c.t.Helper()
	conf := embed.NewConfig()
	conf.Name, conf.Dir = m.name, filepath.Join(c.dir, m.name)
	conf.ListenClientUrls, conf.AdvertiseClientUrls = []url.URL{m.client}, []url.URL{m.client}
	conf.ListenPeerUrls, conf.AdvertisePeerUrls = []url.URL{m.peer}, []url.URL{m.peer}
	var initial []string
	for _, other := range c.members {
		initial = append(initial, other.name+"="+other.peer.String())
	}
	conf.InitialCluster = strings.Join(initial, ",")
	conf.TickMs, conf.ElectionMs = 50, 500
	conf.UnsafeNoFsync = true // a test does not lose power
	conf.EnableGRPCGateway = false
	conf.LogLevel = "panic"
	conf.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(conf)
	if err != nil {
		c.t.Fatalf("etcd member %s: %v", m.name, err)
	}
	m.etcd = etcd
}

func (c *Cluster) await(m *member) {
	c.t.Helper()
	select {
	case <-m.etcd.Server.ReadyNotify():
	case <-time.After(readyTimeout):
		c.t.Fatalf("etcd member %s is not ready after %s", m.name, readyTimeout)
	}
}

// Stop stops one member.
func (c *Cluster) Stop(i int) {
	m := c.members[i]
	if m.etcd != nil {
		m.etcd.Close()
		m.etcd = nil
	}
}

// StopAll stops all members.
func (c *Cluster) StopAll() {
	for i := range c.members {
		c.Stop(i)
	}
}

// Leader returns the index of the leader.
func (c *Cluster) Leader() int {
	for i, m := range c.members {
		if m.etcd != nil && m.etcd.Server.MemberID() == m.etcd.Server.Leader() {
			return i
		}
	}
	return 0
}

// Wipe removes the data of the members, which must be stopped.
func (c *Cluster) Wipe() {
	c.t.Helper()
	for _, m := range c.members {
		if err := os.RemoveAll(filepath.Join(c.dir, m.name)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// Save copies the data of the members, which must be stopped, and returns the folder of the copy.
func (c *Cluster) Save() string {
	c.t.Helper()
	c.backups++
	to := filepath.Join(c.dir, fmt.Sprintf("backup-%d", c.backups))
	for _, m := range c.members {
		if err := os.CopyFS(filepath.Join(to, m.name), os.DirFS(filepath.Join(c.dir, m.name))); err != nil {
			c.t.Fatal(err)
		}
	}
	return to
}

// Restore replaces the data of the members, which must be stopped, with a copy that Save has made.
func (c *Cluster) Restore(backup string) {
	c.t.Helper()
	c.Wipe()
	if err := os.CopyFS(c.dir, os.DirFS(backup)); err != nil {
		c.t.Fatal(err)
	}
}

// Open returns a client of all members, or of the given endpoints.
func (c *Cluster) Open(endpoints ...string) *clusterdb.DB {
	c.t.Helper()
	if len(endpoints) == 0 {
		endpoints = c.Endpoints()
	}
	db, err := clusterdb.Open(context.Background(), clusterdb.Config{
		Endpoints: endpoints, InsecureTransport: true, OperationTimeout: c.OperationTimeout,
		ProbeInterval: 200 * time.Millisecond, ProbeTimeout: time.Second,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			c.t.Errorf("closing a client: %v", err)
		}
	})
	return db
}

// Link is a connection to one member of the cluster. It can be cut, to test a node that is cut off.
type Link struct{ *proxy }

// NewLink opens a link to the i-th member.
func (c *Cluster) NewLink(i int) *Link {
	c.t.Helper()
	p, err := newProxy(c.members[i].client.Host)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(p.close)
	return &Link{p}
}
