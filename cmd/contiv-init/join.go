package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/lifecycle"
)

// A member without data joins the cluster that exists. Only the first member (ordinal 0) may start a new cluster, and only after all other
// members have answered that they have no data either. If new members started a cluster whenever they did not find one, a change from one
// member to three could make a second cluster with a quorum of its own, and agents would write to both.

// noDataHeader is in the answers of a member that has no data and waits for a cluster.
const noDataHeader = "Contiv-Etcd-No-Data"

// errNoData: the member waits for a cluster, too.
var errNoData = errors.New("has no data yet")

// memberList is the path of etcd's JSON gateway that lists the members.
const memberList = "/v3/cluster/member/list"

// callTimeout limits a request to another member. A change of the members is not confirmed while there is no quorum.
const callTimeout = 5 * time.Second

// etcdPeer is a member in etcd's own list; one that has not started yet has no name.
type etcdPeer struct {
	ID       string   `json:"ID"`
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
}

// joiner makes a member without data part of a cluster.
type joiner struct {
	name    string // of the member
	peerURL string
	members int
	others  func(context.Context) ([]kube.Endpoint, error) // the other members' pods
	client  func(netip.Addr) string                        // URL for clients of the member with this address
	peer    func(netip.Addr) string                        // URL for its peers
	http    *http.Client
	log     func(why string)
}

// enter returns etcd's arguments. It waits until there is a cluster to join, or until it is clear that there is none.
func (j *joiner) enter(ctx context.Context) ([]string, error) {
	reported := ""
	for {
		args, err := j.step(ctx)
		if args != nil {
			return args, nil
		}
		if why := err.Error(); why != reported {
			j.log(why)
			reported = why
		}
		timer := time.NewTimer(queryAgain)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// step returns the arguments, or the reason to wait.
func (j *joiner) step(ctx context.Context) ([]string, error) {
	others, err := j.others(ctx)
	if err != nil {
		return nil, err
	}
	var absent []error
	waiting := 0
	for _, o := range others {
		list, err := j.list(ctx, j.client(o.Addr))
		switch {
		case err == nil:
			return j.join(ctx, j.client(o.Addr), list, others)
		case errors.Is(err, errNoData):
			waiting++
		default:
			absent = append(absent, failure(o, err))
		}
	}
	switch {
	case len(absent) > 0:
		return nil, fmt.Errorf("no member responds as part of a cluster: %w", errors.Join(absent...))
	case !strings.HasSuffix(j.name, "-0"):
		return nil, errors.New("waiting for the first member to start a cluster")
	case waiting < j.members-1:
		return nil, fmt.Errorf("%d of %d other members exist", waiting, j.members-1)
	}
	return []string{"--initial-cluster=" + j.name + "=" + j.peerURL, "--initial-cluster-token=contiv-etcd", "--initial-cluster-state=new"}, nil
}

// join adds this member to the cluster in which the member at url is, and removes obsolete entries first.
func (j *joiner) join(ctx context.Context, url string, list []etcdPeer, others []kube.Endpoint) ([]string, error) {
	added := slices.ContainsFunc(list, func(p etcdPeer) bool { return p.Name == "" && slices.Contains(p.PeerURLs, j.peerURL) })
	for _, p := range list {
		if !j.obsolete(p, others) {
			continue
		}
		left, err := j.call(ctx, url+"/v3/cluster/member/remove", map[string]any{"ID": p.ID})
		if err != nil {
			return nil, fmt.Errorf("remove the previous member %s of %s: %w", p.Name, strings.Join(p.PeerURLs, ","), err)
		}
		list = left
	}
	if !added {
		err := j.reach(ctx, list)
		if err != nil {
			return nil, err
		}
		if _, err = j.call(ctx, url+"/v3/cluster/member/add", map[string]any{"peerURLs": []string{j.peerURL}}); err == nil {
			list, err = j.list(ctx, url)
		}
		if err != nil {
			return nil, fmt.Errorf("add the member %s: %w", j.name, err)
		}
	}
	var all []string
	for _, p := range list {
		name := p.Name
		if slices.Contains(p.PeerURLs, j.peerURL) {
			name = j.name
		} else if name == "" {
			name = "member-" + p.ID // etcd compares the URLs only
		}
		for _, u := range p.PeerURLs {
			all = append(all, name+"="+u)
		}
	}
	slices.Sort(all)
	return []string{"--initial-cluster=" + strings.Join(all, ","), "--initial-cluster-token=contiv-etcd", "--initial-cluster-state=existing"}, nil
}

// reach checks that all members respond to their peers. A member counts for the quorum as soon as it is added: with one that cannot connect to the
// others, a cluster of one member would stop, and could not even remove it again.
func (j *joiner) reach(ctx context.Context, list []etcdPeer) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, p := range list {
		for _, u := range p.PeerURLs {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, u+"/members", nil)
			if err != nil {
				return fmt.Errorf("peer URL of etcd's member %s: %w", p.Name, err)
			}
			resp, err := j.http.Do(req)
			if err == nil {
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					continue
				}
				err = errors.New(resp.Status)
			}
			return fmt.Errorf("not added to etcd, because its member %s does not respond at %s (%w); members connect to each other at TCP port %s: allow it in "+
				"the firewalls between their nodes, and see the log of %s", p.Name, u, err, req.URL.Port(), p.Name)
		}
	}
	return nil
}

// obsolete reports whether the entry is of an earlier life of this member, whose data is lost, or of a node that has no pod any more. The name
// alone does not prove it: another pod may run this member now, and publish its own name later. An entry without a name has no data; while it
// exists, etcd adds no other member.
func (j *joiner) obsolete(p etcdPeer, others []kube.Endpoint) bool {
	if slices.Contains(p.PeerURLs, j.peerURL) {
		return p.Name != ""
	}
	if slices.ContainsFunc(others, func(o kube.Endpoint) bool { return slices.Contains(p.PeerURLs, j.peer(o.Addr)) }) {
		return false
	}
	return p.Name == "" || p.Name == j.name || len(others) >= j.members-1
}

// list returns the members of the cluster, as the member at url has them; no quorum is needed.
func (j *joiner) list(ctx context.Context, url string) ([]etcdPeer, error) {
	return j.call(ctx, url+memberList, map[string]any{"linearizable": false})
}

// call makes a request to etcd's JSON gateway, and returns the members in the answer.
func (j *joiner) call(ctx context.Context, url string, request map[string]any) ([]etcdPeer, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := j.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.Header.Get(noDataHeader) != "" {
		return nil, errNoData
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(data)))
	}
	var answer struct {
		Members []etcdPeer `json:"members"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", url, err)
	}
	return answer.Members, nil
}

// answerNoData answers the other members' requests until the returned function is called. Without HTTP/2 the agents' clients do not take it for
// etcd.
func answerNoData(ctx context.Context, listen string, conf *tls.Config, log *slog.Logger) (stop func(), err error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("etcd's port for clients: %w", err)
	}
	conf = conf.Clone()
	conf.NextProtos = []string{"http/1.1"}
	server := &http.Server{
		ReadHeaderTimeout: callTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(noDataHeader, "1")
			http.Error(w, errNoData.Error(), http.StatusServiceUnavailable)
		}),
	}
	jobs := lifecycle.NewGroup(ctx, log)
	jobs.Go("answers without data", func(context.Context) error {
		if err := server.Serve(tls.NewListener(l, conf)); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return func() {
		_ = server.Close()
		_ = jobs.Stop(callTimeout)
	}, nil
}

// tlsConfig returns the configuration of this member as a client of others and as a server; certify has written the files.
func (m *member) tlsConfig() (*tls.Config, error) {
	file := func(name string) string { return filepath.Join(m.tlsDir, name) }
	pair, err := tls.LoadX509KeyPair(file(tlsCert), file(tlsKey))
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", m.name, err)
	}
	ca, err := os.ReadFile(file(caCert))
	if err != nil {
		return nil, fmt.Errorf("etcd CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("etcd CA: %s has no certificate in PEM form", file(caCert))
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// joiner returns the joiner of this member.
func (m *member) joiner(addr netip.Addr) (*joiner, error) {
	k, err := m.client()
	if err != nil {
		return nil, err
	}
	conf, err := m.tlsConfig()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}
	return &joiner{
		name: m.name, peerURL: etcdURL(addr, etcdPeerPort), members: m.members, http: &http.Client{Transport: transport},
		client: func(a netip.Addr) string { return etcdURL(a, etcdClientPort) },
		peer:   func(a netip.Addr) string { return etcdURL(a, etcdPeerPort) },
		log:    func(why string) { m.log.Info("waiting for the cluster", "reason", why) },
		others: func(ctx context.Context) ([]kube.Endpoint, error) {
			ctx, cancel := context.WithTimeout(ctx, queryTimeout)
			defer cancel()
			all, err := k.Endpoints(ctx, m.namespace, m.service)
			return slices.DeleteFunc(onePerPod(all, addr), func(e kube.Endpoint) bool { return e.Pod == m.name || e.Addr == addr }), err
		},
	}, nil
}

// cluster returns the arguments for a member without data.
func (m *member) cluster(ctx context.Context, addr netip.Addr, j *joiner) ([]string, error) {
	conf, err := m.tlsConfig()
	if err != nil {
		return nil, err
	}
	stop, err := answerNoData(ctx, netip.AddrPortFrom(addr, etcdClientPort).String(), conf, m.log)
	if err != nil {
		return nil, err
	}
	defer stop()
	return j.enter(ctx)
}
