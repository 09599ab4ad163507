package diag

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"contiv.dev/vswitch/internal/rest"
)

// DropsPath is the path of the counters of dropped packets, with the reason of the drops.
const DropsPath = "/contiv/v1/drops"

// DropsReply is the answer to GET DropsPath.
type DropsReply struct {
	Sampled  time.Time     `json:"sampled"`
	Counters []DropCounter `json:"counters"` // only those above zero
}

// DropCounter counts packets that one part of the dataplane has dropped for one reason since this part was started.
type DropCounter struct {
	Where  string `json:"where"`  // a node of VPP's graph, a device, a part of the kernel
	Reason string `json:"reason"` // in VPP's words (cut at 30 characters), or a description for a counter of the kernel
	Count  uint64 `json:"count"`
	// Means is the usual cause of the drops, if there is a known one.
	Means string `json:"means,omitempty"`
}

// serveDrops: GET /contiv/v1/drops
func (s *Service) serveDrops(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	list, err := s.drops(ctx)
	if err != nil {
		rest.WriteError(w, http.StatusBadGateway, err)
		return
	}
	slices.SortFunc(list, func(a, b DropCounter) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Where, b.Where), cmp.Compare(a.Reason, b.Reason))
	})
	rest.WriteJSON(w, http.StatusOK, DropsReply{Sampled: time.Now().UTC(), Counters: list})
}

func (s *Service) drops(ctx context.Context) ([]DropCounter, error) {
	if s.CLI == nil {
		return kernelDrops()
	}
	text, err := s.CLI(ctx, "show errors")
	if err != nil {
		return nil, fmt.Errorf("VPP: %w", err)
	}
	return vppDrops(text), nil
}

// vppDrops returns the counters of "show errors" that VPP itself marks as errors; the others count normal events.
func vppDrops(text string) []DropCounter {
	out := []DropCounter{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[len(fields)-1] != "error" {
			continue
		}
		n, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil || n == 0 {
			continue
		}
		c := DropCounter{Where: fields[1], Reason: strings.Join(fields[2:len(fields)-1], " "), Count: n}
		at := slices.IndexFunc(out, func(o DropCounter) bool { return o.Where == c.Where && o.Reason == c.Reason })
		if at >= 0 { // another worker has counted the same drops
			out[at].Count += n
			continue
		}
		c.Means = vppMeans(c.Where, c.Reason)
		out = append(out, c)
	}
	return out
}

// vppMeans returns the usual cause of common counters.
func vppMeans(where, reason string) string {
	text := strings.ToLower(where + ": " + reason)
	for _, known := range []struct{ part, means string }{
		{"not the pod's", "a pod sent from an address that is not its own"},
		{"neighbour that vpp must not have", "a machine claims an address of VPP, or says that a neighbour has the hardware address of several machines"},
		{"neighbour above the limit", "a machine claims more addresses in a second than VPP stores"},
		{"unicast packet in a group frame", "a machine on the uplink's network sends packets for one machine to all of them"},
		{"spoofed", "a pod sent from an address that is not its own"},
		{"denied", "network policy does not allow the connection; contiv-netctl policy why says which rule"},
		{"tunnel", "a pod sent to a tunnel port, which pods may not"},
		{"ttl <= 1", "there is a routing loop, or a traceroute ran"},
		{"no route", "no route leads to the destination"},
		{"null-node: blackholed", "a packet had no next node, such as one for an interface that is down"},
		{"adjacency", "no route leads to the destination, or the neighbour does not reply to ARP"},
		{"arp", "the first packet to a neighbour waits for ARP and is dropped"},
		{"checksum", "the packet was damaged on its way"},
		{"mtu", "the packet is larger than the MTU of the next interface"},
		{"interface is down", "the packet was for an interface that is down"},
		{"no buffer", "VPP has run out of buffers: raise buffers-per-numa"},
		{"no endpoint", "the service has no ready backend"},
		{"maximum sessions exceeded", "the table of NAT sessions is full"},
		{"rpf", "the source address has no route back by the interface that the packet came by"},
	} {
		if strings.Contains(text, known.part) {
			return known.means
		}
	}
	return ""
}
