package statscollector

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"contiv.dev/vswitch/internal/rest"
)

// FrontendsPath is the path of the connections of services by frontend.
const FrontendsPath = "/contiv/v1/traffic/frontends"

// Frontend is an address and port that clients use and the dataplane translates.
type Frontend struct {
	netip.AddrPort
	Proto uint8 // IP protocol
}

// Flows holds the current connections of a frontend that this node has translated. Packets and Bytes count these connections only, in both
// directions.
type Flows struct {
	Connections    int
	Packets, Bytes uint64
}

// FrontendsReport is the response to GET FrontendsPath.
type FrontendsReport struct {
	Sampled   time.Time         `json:"sampled"`
	Frontends []FrontendTraffic `json:"frontends"`
	// CountsPackets is true if Packets and Bytes of the frontends are counted.
	CountsPackets bool `json:"countsPackets"`
	// Missing is the reason why connections are not counted.
	Missing string `json:"missing,omitempty"`
}

// FrontendTraffic is one frontend.
type FrontendTraffic struct {
	Address     netip.Addr `json:"address"`
	Port        uint16     `json:"port"`
	Protocol    string     `json:"protocol"` // TCP, UDP, SCTP, or the number
	Connections int        `json:"connections"`
	Packets     uint64     `json:"packets,omitempty"`
	Bytes       uint64     `json:"bytes,omitempty"`
}

// maxFrontends limits the response; it contains the frontends with the most connections.
const maxFrontends = 5000

// frontends counts the connections, unless they were counted less than natGap ago.
func (n *NAT) frontends(ctx context.Context) FrontendsReport {
	n.mu.Lock()
	defer n.mu.Unlock()
	start := n.now()
	if start.Sub(n.frontsTried) < natGap {
		return n.fronts
	}
	n.frontsTried = start
	ctx, cancel := context.WithTimeout(ctx, natTimeout)
	defer cancel()
	n.fronts = FrontendsReport{Sampled: start, Frontends: []FrontendTraffic{}}
	if n.source.ByFrontend == nil {
		n.fronts.Missing = "this dataplane does not count connections by service"
		return n.fronts
	}
	total, err := n.source.Total()
	if err == nil && total > maxSessions {
		err = fmt.Errorf("there are %d connections, and more than %d are not counted by service", total, maxSessions)
	}
	var list map[Frontend]Flows
	if err == nil {
		list, n.fronts.CountsPackets, err = n.source.ByFrontend(ctx)
	}
	if err != nil {
		n.fronts.Missing = err.Error()
		return n.fronts
	}
	for f, flows := range list {
		n.fronts.Frontends = append(n.fronts.Frontends, FrontendTraffic{f.Addr(), f.Port(), protocolName(f.Proto), flows.Connections,
			flows.Packets, flows.Bytes})
	}
	slices.SortFunc(n.fronts.Frontends, func(a, b FrontendTraffic) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), a.Address.Compare(b.Address), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Protocol, b.Protocol))
	})
	n.fronts.Frontends = n.fronts.Frontends[:min(len(n.fronts.Frontends), maxFrontends)]
	return n.fronts
}

func protocolName(proto uint8) string {
	switch proto {
	case 6:
		return "TCP"
	case 17:
		return "UDP"
	case 132:
		return "SCTP"
	}
	return fmt.Sprint(proto)
}

// serveFrontends serves GET FrontendsPath.
func (n *NAT) serveFrontends(w http.ResponseWriter, r *http.Request) {
	rest.WriteJSON(w, http.StatusOK, n.frontends(r.Context()))
}
