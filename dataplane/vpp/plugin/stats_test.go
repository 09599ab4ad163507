package plugin_test

import (
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestGauges: the statistics segment contains the number of connections, their maximum, and the number of rejected ones, in the form
// that the agent reads.
func TestGauges(t *testing.T) {
	s := newSite(newRig(t, vpptest.Options{Workers: 2, Config: "contiv { connections 1024 }\n"}))
	read := func() vpp.Connections {
		counters, err := vpp.ReadPathCounters(s.vpp.StatsSocket())
		if err != nil {
			t.Fatal(err)
		}
		if counters.Connections == nil {
			t.Fatal("the plugin's gauges are not there")
		}
		return *counters.Connections
	}
	flood := func(v6 bool, from, n uint16) {
		var packets [][]byte
		for port := range n {
			f, _ := requestFlow(v6, udp, from+port)
			packets = append(packets, f.packet(0, nil))
		}
		s.send(s.client, s.all, packets...)
	}
	const limit = 100
	s.do(s.api.ContivConfigSet(t.Context(), &contiv.ContivConfigSet{EndpointConnections: limit}))
	flood(false, 1000, 150) // 50 above the limit of the pod
	s.do(s.api.ContivConfigSet(t.Context(), &contiv.ContivConfigSet{EndpointConnections: 10000}))
	flood(true, 1000, 1100) // 76 more than the table holds
	st := s.stats()
	want := vpp.Connections{
		IPv4: uint64(st.Connections4), IPv6: uint64(st.Connections6), Max: 1024, TableRefused: st.RefusedFull, EndpointRefused: st.RefusedLimit,
	}
	if want.IPv4 != limit || want.IPv6 == 0 || want.TableRefused == 0 || want.EndpointRefused != 50 {
		t.Errorf("not what was sent: %+v", want)
	}
	s.advance(10 * time.Second) // VPP collects the gauges at this interval
	s.eventually("the gauges are up to date", func() bool { return read() == want })
	if got := read(); got != want {
		t.Errorf("in the statistics %+v, want %+v", got, want)
	}
}
