package connectivity

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"contiv.dev/vswitch/internal/rest"
)

// ResolveRequest is the body of POST ResolvePath.
type ResolveRequest struct {
	Name     string         `json:"name"` // name of the pod that sends the query
	Server   netip.AddrPort `json:"server"`
	Question string         `json:"question"`
}

// ResolveResult is the answer to a ResolveRequest.
type ResolveResult struct {
	Code      string       `json:"code"`
	Addresses []netip.Addr `json:"addresses"`
}

// serveResolve: POST /contiv/v1/testpods/resolve
func (s *Service) serveResolve(w http.ResponseWriter, r *http.Request) {
	var req ResolveRequest
	if !rest.ReadJSON(w, r, maxBody, &req) {
		return
	}
	res, err := s.resolve(&req)
	if err != nil {
		rest.WriteError(w, http.StatusBadGateway, fmt.Errorf("DNS server %s: %w", req.Server, err))
		return
	}
	rest.WriteJSON(w, http.StatusOK, res)
}

func (s *Service) resolve(req *ResolveRequest) (*ResolveResult, error) {
	name, err := dnsmessage.NewName(req.Question)
	if err != nil {
		return nil, fmt.Errorf("question %q: %w; end it with a dot", req.Question, err)
	}
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: uint16(time.Now().UnixNano()), RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		return nil, err
	}
	c, err := s.dial(req.Name, "udp", req.Server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return exchange(c, packed, query.ID)
}

// exchange sends the query up to three times, because UDP may lose packets.
func exchange(c net.Conn, packed []byte, id uint16) (*ResolveResult, error) {
	var failed error
	buf := make([]byte, 4096)
	for range 3 {
		if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return nil, err
		}
		if _, failed = c.Write(packed); failed != nil {
			continue
		}
		n, err := c.Read(buf)
		if failed = err; err != nil {
			continue
		}
		var m dnsmessage.Message
		if failed = m.Unpack(buf[:n]); failed != nil || m.ID != id {
			continue
		}
		res := &ResolveResult{Code: m.RCode.String(), Addresses: []netip.Addr{}}
		for _, a := range m.Answers {
			if r, ok := a.Body.(*dnsmessage.AResource); ok {
				res.Addresses = append(res.Addresses, netip.AddrFrom4(r.A))
			}
		}
		return res, nil
	}
	return nil, failed
}
