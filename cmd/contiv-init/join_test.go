package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"contiv.dev/vswitch/internal/etcdpki"
	"contiv.dev/vswitch/internal/kube"
)

// pods is the service that lists the members.
type pods struct {
	mu  sync.Mutex
	all []kube.Endpoint
	at  map[netip.Addr]machine
}

// joiner returns a joiner for a member whose clients use the port.
func (p *pods) joiner(name string, members int, peer string) *joiner {
	return &joiner{
		name: name, peerURL: peer, members: members, http: &http.Client{}, log: func(string) {},
		client: func(a netip.Addr) string { p.mu.Lock(); defer p.mu.Unlock(); return p.at[a].client },
		peer:   func(a netip.Addr) string { p.mu.Lock(); defer p.mu.Unlock(); return p.at[a].peer },
		others: func(context.Context) ([]kube.Endpoint, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return slices.DeleteFunc(slices.Clone(p.all), func(e kube.Endpoint) bool { return e.Pod == name }), nil
		},
	}
}

func (p *pods) add(name string, n machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := netip.MustParseAddr(n.address)
	p.all = append(slices.DeleteFunc(p.all, func(e kube.Endpoint) bool { return e.Pod == name }), kube.Endpoint{Pod: name, Addr: a})
	if p.at == nil {
		p.at = map[netip.Addr]machine{}
	}
	p.at[a] = n
}

func freeURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// machine is a node on which members can run.
type machine struct{ address, client, peer, dir string }

func newMachine(t *testing.T, address string) machine {
	t.Helper()
	return machine{address, freeURL(t), freeURL(t), t.TempDir()}
}

// startMember starts etcd with its data in dir and the joiner's arguments. The function that it returns ends etcd.
func startMember(t *testing.T, n machine, name, dir string, args []string, options ...func(*embed.Config)) (*embed.Etcd, func()) {
	t.Helper()
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel, c.LogOutputs = name, dir, "fatal", []string{"/dev/null"}
	for _, a := range args {
		switch flag, value, _ := strings.Cut(a, "="); flag {
		case "--initial-cluster":
			c.InitialCluster = value
		case "--initial-cluster-state":
			c.ClusterState = value
		case "--initial-cluster-token":
			c.InitialClusterToken = value
		}
	}
	list := func(text string) []url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return []url.URL{*u}
	}
	client, peer := list(n.client), list(n.peer)
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls, c.AdvertisePeerUrls = client, client, peer, peer
	for _, option := range options {
		option(c)
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatalf("%s with %v: %v", name, args, err)
	}
	stop := sync.OnceFunc(e.Close)
	t.Cleanup(stop)
	return e, stop
}

func awaitReady(t *testing.T, members ...*embed.Etcd) {
	t.Helper()
	for _, e := range members {
		select {
		case <-e.Server.ReadyNotify():
		case <-time.After(time.Minute):
			t.Fatalf("%s is not ready", e.Config().Name)
		}
	}
}

// start starts a member on a machine, as contiv-init does.
func (p *pods) start(t *testing.T, name string, n machine, members int) (*embed.Etcd, func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p.add(name, n)
	m := &member{common: &common{log: slog.New(slog.DiscardHandler)}, name: name, members: members, dataDir: n.dir}
	j := p.joiner(name, members, n.peer)
	dir, ok, err := m.data(ctx, j)
	var args []string
	if err == nil && !ok {
		args, err = j.enter(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return startMember(t, n, name, dir, args)
}

// expectOneCluster checks that the members are in one cluster, which has no other members.
func expectOneCluster(t *testing.T, members ...*embed.Etcd) {
	t.Helper()
	var want []string
	for _, e := range members {
		want = append(want, e.Config().Name+" "+e.Config().AdvertisePeerUrls[0].String())
	}
	slices.Sort(want)
	for _, e := range members {
		var got []string
		for deadline := time.After(10 * time.Second); ; {
			got = nil
			for _, m := range e.Server.Cluster().Members() {
				got = append(got, m.Name+" "+strings.Join(m.PeerURLs, ","))
			}
			slices.Sort(got)
			if slices.Equal(got, want) {
				break
			}
			select { // members publish their names after they are ready
			case <-deadline:
				t.Fatalf("%s has the members %v, not %v", e.Config().Name, got, want)
			case <-time.After(50 * time.Millisecond):
			}
		}
		if id := e.Server.Cluster().ID(); id != members[0].Server.Cluster().ID() {
			t.Errorf("%s is in cluster %s", e.Config().Name, id)
		}
	}
}

// TestJoin changes a cluster from one member to three, and then replaces the machine of a member: there is always one cluster.
func TestJoin(t *testing.T) {
	p := &pods{}
	first, _ := p.start(t, "etcd-0", newMachine(t, "192.0.2.1"), 1)
	awaitReady(t, first)
	second, stopSecond := p.start(t, "etcd-1", newMachine(t, "192.0.2.2"), 3)
	awaitReady(t, second)
	third, _ := p.start(t, "etcd-2", newMachine(t, "192.0.2.3"), 3)
	awaitReady(t, third)
	stopSecond() // its machine is lost, with its data
	moved, _ := p.start(t, "etcd-1", newMachine(t, "192.0.2.4"), 3)
	awaitReady(t, moved)
	expectOneCluster(t, first, third, moved)
}

// TestNeverStarted: the node of a member is lost after the member was added and before it started; the member starts on another node.
func TestNeverStarted(t *testing.T) {
	p := &pods{}
	_, members, stops := threeMembers(t, p)
	stops[2]()
	lost := newMachine(t, "192.0.2.4")
	p.add("etcd-2", lost)
	if _, err := p.joiner("etcd-2", 3, lost.peer).enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved, _ := p.start(t, "etcd-2", newMachine(t, "192.0.2.5"), 3)
	awaitReady(t, moved)
	expectOneCluster(t, members[0], members[1], moved)
}

// TestNoSecondCluster checks that a member without data waits while another member does not respond: it may have data.
func TestNoSecondCluster(t *testing.T) {
	p := &pods{}
	serve := func() string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(noDataHeader, "1") }))
		t.Cleanup(s.Close)
		return s.URL
	}
	p.add("etcd-0", machine{address: "192.0.2.1", client: freeURL(t)})
	p.add("etcd-1", machine{address: "192.0.2.2", client: serve()})
	p.add("etcd-2", machine{address: "192.0.2.3", client: freeURL(t)})
	waits := func(name, reason string) {
		t.Helper()
		if args, err := p.joiner(name, 3, "http://peer").step(t.Context()); args != nil || err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, %v", name, args, err)
		}
	}
	waits("etcd-0", "etcd-2: ")
	waits("etcd-1", "etcd-0: ")
	p.add("etcd-2", machine{address: "192.0.2.3", client: serve()})
	args, err := p.joiner("etcd-0", 3, "http://peer").step(t.Context())
	if err != nil || !slices.Contains(args, "--initial-cluster=etcd-0=http://peer") || !slices.Contains(args, "--initial-cluster-state=new") {
		t.Errorf("first member, no other has data: %v, %v", args, err)
	}
	p.all = p.all[:2]
	waits("etcd-0", "1 of 2 other members")
	p.add("etcd-0", machine{address: "192.0.2.1", client: serve()})
	waits("etcd-1", "waiting for the first member")
}

// TestObsoleteEntries: a member that joins removes the entries that have no pod any more, and no others.
func TestObsoleteEntries(t *testing.T) {
	p := &pods{}
	p.add("etcd-0", machine{address: "192.0.2.1", peer: "http://a"})
	p.add("etcd-2", machine{address: "192.0.2.2", peer: "http://b"})
	j := p.joiner("etcd-1", 3, "http://d")
	all, err := j.others(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		entry     etcdPeer
		pods      []kube.Endpoint
		want      bool
		situation string
	}{
		{etcdPeer{Name: "etcd-1", PeerURLs: []string{"http://d"}}, all, true, "our entry, whose data is lost"},
		{etcdPeer{PeerURLs: []string{"http://d"}}, all, false, "our new entry"},
		{etcdPeer{Name: "etcd-1", PeerURLs: []string{"http://c"}}, all[:1], true, "our entry on the previous node"},
		{etcdPeer{Name: "etcd-1", PeerURLs: []string{"http://b"}}, all, false, "etcd-2 runs with our data, and has not published its name"},
		{etcdPeer{Name: "etcd-2", PeerURLs: []string{"http://c"}}, all, true, "the lost node of etcd-2, which runs with our data"},
		{etcdPeer{PeerURLs: []string{"http://c"}}, all[:1], true, "a node that was lost before its member started"},
		{etcdPeer{PeerURLs: []string{"http://b"}}, all, false, "etcd-2 starts"},
		{etcdPeer{Name: "etcd-2", PeerURLs: []string{"http://c"}}, all[:1], false, "etcd-2 has no address at the moment"},
	} {
		if got := j.obsolete(c.entry, c.pods); got != c.want {
			t.Errorf("%s: %v", c.situation, got)
		}
	}
}

// certified returns a member at 127.0.0.1 with a certificate, and its configuration for TLS.
func certified(t *testing.T) (*member, *tls.Config) {
	t.Helper()
	ca, err := etcdpki.NewCA("ca")
	if err != nil {
		t.Fatal(err)
	}
	m := &member{name: "etcd-1", caDir: t.TempDir(), tlsDir: t.TempDir()}
	for name, data := range map[string][]byte{caCert: ca.Cert, caKey: ca.Key} {
		if err := os.WriteFile(filepath.Join(m.caDir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.certify(netip.MustParseAddr("127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	conf, err := m.tlsConfig()
	if err != nil {
		t.Fatal(err)
	}
	return m, conf
}

// TestAnswerNoData checks that members recognise each other's answer, and that clients of etcd do not connect.
func TestAnswerNoData(t *testing.T) {
	_, conf := certified(t)
	address := strings.TrimPrefix(freeURL(t), "http://")
	stop, err := answerNoData(t.Context(), address, conf, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	j := &joiner{http: &http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}}}
	if _, err := j.list(t.Context(), "https://"+address); !errors.Is(err, errNoData) {
		t.Error(err)
	}
	grpc := conf.Clone()
	grpc.NextProtos = []string{"h2"}
	if c, err := tls.Dial("tcp", address, grpc); err == nil {
		c.Close()
		t.Error("a client of etcd connects")
	}
}
