package vppfake_test

import (
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tapv2"
	"go.fd.io/govpp/binapi/vlib"
)

// placedScenario is the scenario that needs worker threads.
const placedScenario = "rx_placement_worker"

func queueScenarios() []scenario {
	return []scenario{
		{"rx_placement", rxPlacement},
		{placedScenario, rxPlacement},
	}
}

// workers returns the number of VPP's worker threads in the scenario.
func (sc scenario) workers() int {
	if sc.name == placedScenario {
		return 1
	}
	return 0
}

func rxPlacement(s *script) {
	threads := &vlib.ShowThreadsReply{}
	if err := s.conn.Invoke(s.t.Context(), &vlib.ShowThreads{}, threads); err != nil {
		s.t.Fatal(err)
	}
	for _, d := range threads.ThreadData {
		s.line("thread %d %q %q", d.ID, d.Name, d.Type)
	}
	i := s.loop()
	dump := func() { s.dump(&interfaces.SwInterfaceRxPlacementDump{SwIfIndex: index(none)}) }
	tap := func(queues uint16) index {
		r := s.do(&tapv2.TapCreateV3{ID: none, UseRandomMac: true, NumRxQueues: queues, NumTxQueues: 1})
		return r.(*tapv2.TapCreateV3Reply).SwIfIndex
	}
	place := func(i index, queue, worker uint32, main bool) {
		s.do(&interfaces.SwInterfaceSetRxPlacement{SwIfIndex: i, QueueID: queue, WorkerID: worker, IsMain: main})
	}
	one, two := tap(1), tap(1)
	dump()
	place(one, 0, 0, true)
	dump()
	place(one, 0, 0, false)
	dump()
	place(one, 0, 1, false)
	place(one, 0, 1, true)
	place(one, 0, 5, false)
	place(one, 0, 1<<16, false)
	place(one, 0, none, false)
	place(one, 1, 0, true)
	place(i, 0, 0, true)
	place(9, 0, 0, true)
	place(0, 0, 0, true)
	dump()
	s.note("the mode stays, a sub-interface has no queues, a new interface starts afresh")
	s.do(&interfaces.SwInterfaceSetRxMode{SwIfIndex: two, Mode: interface_types.RX_MODE_API_INTERRUPT})
	place(two, 0, 0, true)
	s.do(&interfaces.CreateVlanSubif{SwIfIndex: two, VlanID: 5})
	place(4, 0, 0, true)
	dump()
	s.do(&tapv2.TapDeleteV2{SwIfIndex: two})
	dump()
	tap(1)
	dump()
}
