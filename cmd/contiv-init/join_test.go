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
	url map[netip.Addr]string // where clients reach the member with this address
}

// joiner returns a joiner for a member whose clients use the port.
func (p *pods) joiner(name string, members int, peer string) *joiner {
	return &joiner{
		name: name, peerURL: peer, members: members, http: &http.Client{}, log: func(string) {},
		client: func(a netip.Addr) string { p.mu.Lock(); defer p.mu.Unlock(); return p.url[a] },
		others: func(context.Context) ([]kube.Endpoint, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return slices.DeleteFunc(slices.Clone(p.all), func(e kube.Endpoint) bool { return e.Pod == name }), nil
		},
	}
}

func (p *pods) add(name, address, url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := netip.MustParseAddr(address)
	p.all = append(slices.DeleteFunc(p.all, func(e kube.Endpoint) bool { return e.Pod == name }), kube.Endpoint{Pod: name, Addr: a})
	if p.url == nil {
		p.url = map[netip.Addr]string{}
	}
	p.url[a] = url
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

// startMember starts etcd with the joiner's arguments. The function that it returns ends etcd.
func startMember(t *testing.T, name, client, peer string, args []string) (*embed.Etcd, func()) {
	t.Helper()
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel, c.LogOutputs = name, filepath.Join(t.TempDir(), name), "fatal", []string{"/dev/null"}
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
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls, c.AdvertisePeerUrls = list(client), list(client), list(peer), list(peer)
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatalf("%s with %v: %v", name, args, err)
	}
	stop := sync.OnceFunc(e.Close)
	t.Cleanup(stop)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatalf("%s is not ready", name)
	}
	return e, stop
}

// TestJoin changes a cluster from one member to three, and then replaces the machine of a member: there is always one cluster.
func TestJoin(t *testing.T) {
	p := &pods{}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	start := func(name, address string, members int) (*embed.Etcd, func()) {
		t.Helper()
		client, peer := freeURL(t), freeURL(t)
		p.add(name, address, client)
		args, err := p.joiner(name, members, peer).enter(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return startMember(t, name, client, peer, args)
	}
	first, _ := start("etcd-0", "192.0.2.1", 1)
	_, stopSecond := start("etcd-1", "192.0.2.2", 3)
	third, _ := start("etcd-2", "192.0.2.3", 3)
	stopSecond() // its machine is lost, with its data
	moved, _ := start("etcd-1", "192.0.2.4", 3)
	for i, e := range []*embed.Etcd{first, third, moved} {
		var names []string
		for _, m := range e.Server.Cluster().Members() {
			names = append(names, m.Name)
		}
		slices.Sort(names)
		if e.Server.Cluster().ID() != first.Server.Cluster().ID() || !slices.Equal(names, []string{"etcd-0", "etcd-1", "etcd-2"}) {
			t.Errorf("member %d is in cluster %s with %v", i, e.Server.Cluster().ID(), names)
		}
	}
}

// TestNoSecondCluster checks that a member without data waits while another member does not respond: it may have data.
func TestNoSecondCluster(t *testing.T) {
	p := &pods{}
	serve := func() string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(noDataHeader, "1") }))
		t.Cleanup(s.Close)
		return s.URL
	}
	p.add("etcd-0", "192.0.2.1", freeURL(t))
	p.add("etcd-1", "192.0.2.2", serve())
	p.add("etcd-2", "192.0.2.3", freeURL(t))
	waits := func(name, reason string) {
		t.Helper()
		if args, err := p.joiner(name, 3, "http://peer").step(t.Context()); args != nil || err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, %v", name, args, err)
		}
	}
	waits("etcd-0", "etcd-2: ")
	waits("etcd-1", "etcd-0: ")
	p.add("etcd-2", "192.0.2.3", serve())
	args, err := p.joiner("etcd-0", 3, "http://peer").step(t.Context())
	if err != nil || !slices.Contains(args, "--initial-cluster=etcd-0=http://peer") || !slices.Contains(args, "--initial-cluster-state=new") {
		t.Errorf("first member, no other has data: %v, %v", args, err)
	}
	p.all = p.all[:2]
	waits("etcd-0", "1 of 2 other members")
	p.add("etcd-0", "192.0.2.1", serve())
	waits("etcd-1", "waiting for the first member")
}

// TestAnswerNoData checks that members recognise each other's answer, and that clients of etcd do not connect.
func TestAnswerNoData(t *testing.T) {
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
