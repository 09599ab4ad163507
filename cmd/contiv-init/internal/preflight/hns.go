package preflight

import (
	"time"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnscall"
	"contiv.dev/vswitch/internal/lifecycle"
)

// HNS is the interface by which pre-flight queries Windows' Host Network Service: hcn.Service, or hnsmem.V2 in memory.
type HNS interface {
	Features() (hcn.Features, error)
	ListNetworks() ([]hcn.Network, error)
}

// HNSTimeout is the timeout for all queries to HNS together.
const HNSTimeout = 15 * time.Second

// QueryHNS returns the features of the Host Network Service, or why it cannot be used. A call that exceeds the limit is abandoned: it goes on in
// jobs, because HNS has no way to cancel it.
func QueryHNS(jobs *lifecycle.Group, limit time.Duration, open func() (HNS, error)) (hcn.Features, error) {
	calls := hnscall.New(hnscall.Config{Jobs: jobs, Timeout: limit, MaxGivenUp: 1})
	return hnscall.Do(calls, "features and networks", func() (hcn.Features, error) {
		service, err := open()
		if err != nil {
			return hcn.Features{}, err
		}
		features, err := service.Features()
		if err == nil {
			_, err = service.ListNetworks()
		}
		return features, err
	})
}
