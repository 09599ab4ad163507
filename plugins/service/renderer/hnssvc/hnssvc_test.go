package hnssvc

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hostsvc"
)

// store is a transaction that is applied at once.
type store map[string]pb.Message

func (s store) Update(string) api.UpdateOperations { return s }
func (s store) Resync() api.ResyncOperations       { clear(s); return s }
func (s store) Put(key string, m pb.Message)       { s[key] = m }
func (s store) Get(key string) pb.Message          { return s[key] }
func (s store) Delete(key string)                  { delete(s, key) }

// TestLacking checks that features that Windows' load balancers lack are problems of that Service only, both by an update and by a resync.
func TestLacking(t *testing.T) {
	backend := func(addr string, port uint16) *renderer.ServiceBackend {
		return &renderer.ServiceBackend{IP: net.ParseIP(addr), Port: port, Local: true}
	}
	for name, c := range map[string]struct {
		change func(*renderer.ContivService)
		want   string
	}{
		"all is well": {change: func(*renderer.ContivService) {}},
		"SCTP":        {change: func(s *renderer.ContivService) { s.Ports["p"].Protocol = renderer.SCTP }, want: "no load balancer for SCTP"},
		"target ports": {change: func(s *renderer.ContivService) {
			s.Backends["p"] = append(s.Backends["p"], backend("10.1.1.3", 8081))
		}, want: "give all pods the same port"},
		"target ports of terminating pods": {change: func(s *renderer.ContivService) {
			s.LocalPolicyBackends = map[string][]*renderer.ServiceBackend{"p": {backend("10.1.1.3", 8081)}}
		}, want: "give all pods the same port"},
		"ports of families": {change: func(s *renderer.ContivService) {
			s.Backends["p"] = append(s.Backends["p"], backend("fd01::3", 8081))
		}},
		"source ranges": {change: func(s *renderer.ContivService) { s.SourceRangesSet = true }, want: "cannot tell clients apart"},
	} {
		t.Run(name, func(t *testing.T) {
			s := renderer.NewContivService()
			s.ID = renderer.ServiceID{Namespace: "ns", Name: "s"}
			s.ClusterIPs = renderer.FromAddrs(netip.MustParseAddr("10.96.0.1"))
			s.Ports["p"] = &renderer.ServicePort{Protocol: renderer.TCP, Port: 80}
			s.Backends["p"] = []*renderer.ServiceBackend{backend("10.1.1.2", 8080)}
			c.change(s)
			r := New(hostsvc.Deps{Txn: store{}})
			ev := renderer.NewResyncEventData()
			empty := r.Resync(ev)
			ev.Services = []*renderer.ContivService{s}
			for way, err := range map[string]error{"add": r.AddService(s), "update": r.UpdateService(s, s, nil), "resync": r.Resync(ev)} {
				refused, rest := renderer.Refusals(err)
				switch {
				case empty != nil || rest != nil:
					t.Errorf("%s: %v", way, errors.Join(empty, rest))
				case c.want == "" && len(refused) > 0:
					t.Errorf("%s: refused: %v", way, err)
				case c.want != "" && (len(refused) != 1 || refused[0].ID != s.ID || !strings.Contains(err.Error(), c.want)):
					t.Errorf("%s: %v, want %q", way, err, c.want)
				}
			}
		})
	}
}
