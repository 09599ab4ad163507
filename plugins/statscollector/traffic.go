package statscollector

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"contiv.dev/vswitch/internal/rest"
)

// TrafficPath is the path of the counters of interfaces, from which rates are computed.
const TrafficPath = "/contiv/v1/traffic"

// TrafficReport is the response to GET TrafficPath. Rates are computed from the difference of two responses.
type TrafficReport struct {
	// Sampled is the time at which the counters were read, by the clock of the node.
	Sampled    time.Time          `json:"sampled"`
	Interfaces []InterfaceTraffic `json:"interfaces"`
	// Missing is the reason why there are no counters: a dataplane that forwards no packets has none.
	Missing string `json:"missing,omitempty"`
}

// InterfaceTraffic holds the counters of one pod, or of an interface of the node, from the view of the dataplane: received packets were
// sent by the pod. Counters begin at zero when the interface is created.
type InterfaceTraffic struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`       // empty for an interface of the node
	Interface string `json:"interface,omitempty"` // empty for a pod
	RxPackets uint64 `json:"rxPackets"`
	RxBytes   uint64 `json:"rxBytes"`
	TxPackets uint64 `json:"txPackets"`
	TxBytes   uint64 `json:"txBytes"`
	Drops     uint64 `json:"drops"`
	Errors    uint64 `json:"errors"`
	NoBuffer  uint64 `json:"noBuffer"`
}

// ServeTraffic serves TrafficPath from a source; pods above max are added up. If the dataplane forwards no packets, missing is the reason,
// and the source is not read.
func ServeTraffic(read Source, missing string, max int, handlers rest.HTTPHandlers, log *slog.Logger) {
	handlers.RegisterHTTPHandler(TrafficPath, func(w http.ResponseWriter, _ *http.Request) {
		rep := TrafficReport{Sampled: time.Now().UTC(), Interfaces: []InterfaceTraffic{}, Missing: missing}
		if missing == "" {
			list, err := read()
			if err != nil {
				rest.WriteError(w, http.StatusBadGateway, fmt.Errorf("counters of interfaces: %w", err))
				return
			}
			rep.Sampled = time.Now().UTC()
			for _, c := range bounded(list, max) {
				rep.Interfaces = append(rep.Interfaces, InterfaceTraffic{c.Namespace, c.Pod, c.Interface, c.RxPackets, c.RxBytes,
					c.TxPackets, c.TxBytes, c.Drops, c.RxErrors + c.TxErrors, c.NoBuffer + c.Missed})
			}
		}
		rest.WriteJSON(w, http.StatusOK, rep)
	})
}
