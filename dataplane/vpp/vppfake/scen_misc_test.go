package vppfake_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/feature"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/pg"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/core"
)

func miscScenarios() []scenario {
	return []scenario{
		{"control", control},
		{"events", events},
		{"feature", featuresScenario},
		{"bvi_interface", bviInterface},
		{"pg", pgInterfaces},
		{"protocol", protocol},
		{"fatal_sr", func(s *script) {
			s.fatal(&sr.SrPolicyAddV2{BsidAddr: ip6("fd00::1"), IsEncap: true, EncapSrc: ip6("fd00::9")})
		}},
		{"fatal_sr_v1", func(s *script) { s.fatal(&sr.SrPolicyAdd{BsidAddr: ip6("fd00::1"), IsEncap: true}) }},
		{"sr_policy", srPolicies},
		{"fatal_memif_v1", func(s *script) {
			s.fatal(&memif.MemifCreate{Mode: memif.MEMIF_MODE_API_PUNT_INJECT, ID: 7, RingSize: 1024, BufferSize: 2048})
		}},
		{"fatal_memif", func(s *script) {
			s.fatal(&memif.MemifCreateV2{Mode: memif.MEMIF_MODE_API_PUNT_INJECT, ID: 7, RingSize: 1024, BufferSize: 2048})
		}},
	}
}

// srPolicies sends requests that VPP rejects before it reads the SIDs, and requests for missing policies.
func srPolicies(s *script) {
	i := s.loopUp()
	s.addr(i, "fd00::1/128")
	s.do(&sr.SrPolicyAddV2{BsidAddr: ip6("fd00::1"), IsEncap: true})
	s.do(&sr.SrPolicyAddV2{BsidAddr: ip6("fd00::2"), IsEncap: true, FibTable: 5})
	s.do(&sr.SrPolicyAdd{BsidAddr: ip6("fd00::1"), FibTable: none})
	s.do(&sr.SrPolicyAdd{BsidAddr: ip6("fd00::2"), FibTable: 5})
	s.do(&sr.SrPolicyMod{BsidAddr: ip6("fd00::2"), Operation: sr_types.SR_POLICY_OP_API_ADD})
	s.do(&sr.SrPolicyModV2{BsidAddr: ip6("fd00::2"), Operation: sr_types.SR_POLICY_OP_API_ADD})
	s.do(&sr.SrPolicyDel{BsidAddr: ip6("fd00::2")})
}

func control(s *script) {
	ping := s.do(&memclnt.ControlPing{}).(*memclnt.ControlPingReply)
	s.line("pid is there: %v", ping.VpePID != 0)
	v := &vpe.ShowVersionReply{}
	if err := s.conn.Invoke(s.t.Context(), &vpe.ShowVersion{}, v); err != nil {
		s.t.Fatal(err)
	}
	s.line("program %s, version starts with 25.10: %v", v.Program, strings.HasPrefix(v.Version, "25.10"))
	threads := &vlib.ShowThreadsReply{}
	if err := s.conn.Invoke(s.t.Context(), &vlib.ShowThreads{}, threads); err != nil {
		s.t.Fatal(err)
	}
	s.line("threads %d, first %q", threads.Count, threads.ThreadData[0].Name)
	for _, cmd := range []string{"show version", "no such command"} {
		r := &vlib.CliInbandReply{}
		if err := s.conn.Invoke(s.t.Context(), &vlib.CliInband{Cmd: cmd}, r); err != nil {
			s.t.Fatal(err)
		}
		s.line("cli %q: retval %d", cmd, r.Retval)
	}
}

func events(s *script) {
	w := s.subscribe(&interfaces.SwInterfaceEvent{})
	s.loop()
	s.do(&interfaces.WantInterfaceEvents{})
	s.do(&interfaces.WantInterfaceEvents{EnableDisable: 1, PID: 77})
	s.do(&interfaces.WantInterfaceEvents{EnableDisable: 1, PID: 78})
	s.seen(w)
	s.up(1)
	s.seen(w)
	s.up(1)
	s.seen(w)
	s.loop()
	s.seen(w)
	s.do(&interfaces.CreateVlanSubif{SwIfIndex: 1, VlanID: 5})
	s.up(3)
	s.seen(w)
	s.down(1)
	s.seen(w)
	s.do(tunnel("10.0.0.1", "10.0.0.2", 4))
	s.seen(w)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 2})
	s.seen(w)
	s.up(1)
	s.seen(w)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 1})
	s.seen(w)
	s.do(&interfaces.WantInterfaceEvents{})
	s.do(&interfaces.WantInterfaceEvents{})
	s.loop()
	s.seen(w)
}

// subscribe returns a channel to which the connection's reader itself sends events: they are in the order in which VPP sent them.
func (s *script) subscribe(event api.Message) <-chan api.Message {
	s.t.Helper()
	ch, err := s.conn.(*core.Connection).NewAPIChannel()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(ch.Close)
	events := make(chan api.Message, 100)
	if _, err := ch.SubscribeNotification(events, event); err != nil {
		s.t.Fatal(err)
	}
	return events
}

// seen records the received events; VPP batches and repeats them, so events of one interface are merged. Events that VPP sends before a reply
// have arrived when the reply has.
func (s *script) seen(w <-chan api.Message) {
	s.t.Helper()
	s.advance(200 * time.Millisecond)
	if err := s.conn.Invoke(s.t.Context(), &memclnt.ControlPing{}, &memclnt.ControlPingReply{}); err != nil {
		s.t.Fatal(err)
	}
	byIndex := map[uint32]string{}
	for quiet := false; !quiet; {
		select {
		case e := <-w:
			m := e.(*interfaces.SwInterfaceEvent)
			byIndex[uint32(m.SwIfIndex)] = fmt.Sprintf("  event: pid %d interface %d flags %d deleted %v", m.PID, m.SwIfIndex, m.Flags, m.Deleted)
		default:
			quiet = true
		}
	}
	var lines []string
	for _, l := range byIndex {
		lines = append(lines, l)
	}
	slices.Sort(lines)
	if len(lines) == 0 {
		lines = []string{"  no event"}
	}
	s.line("%s", strings.Join(lines, "\n"))
}

func featuresScenario(s *script) {
	i := s.loop()
	fe := func(i index, arc, name string, enable bool) {
		s.do(&feature.FeatureEnableDisable{SwIfIndex: i, Enable: enable, ArcName: arc, FeatureName: name})
	}
	fe(i, "ip4-unicast", "ip4-source-and-port-range-check-rx", true)
	fe(i, "ip4-unicast", "ip4-source-and-port-range-check-rx", true)
	s.do(&feature.FeatureIsEnabled{SwIfIndex: i, ArcName: "ip4-unicast", FeatureName: "ip4-source-and-port-range-check-rx"})
	fe(i, "ip4-unicast", "ip4-source-and-port-range-check-rx", false)
	fe(i, "no-such-arc", "ip4-source-and-port-range-check-rx", true)
	fe(9, "ip4-unicast", "ip4-source-and-port-range-check-rx", true)
	s.do(&feature.FeatureIsEnabled{SwIfIndex: 9, ArcName: "ip4-unicast", FeatureName: "x"})
}

func (s *script) enabled(i index, arc, name string) {
	s.do(&feature.FeatureIsEnabled{SwIfIndex: i, ArcName: arc, FeatureName: name})
}

func bviInterface(s *script) {
	s.do(&l2.BviCreate{UserInstance: none})
	s.do(&l2.BviCreate{UserInstance: 7, Mac: mac("02:00:00:00:00:07")})
	s.do(&l2.BviCreate{UserInstance: 7})
	s.interfaces()
	s.up(1)
	s.do(&interfaces.SwInterfaceSetPromisc{SwIfIndex: 1, PromiscOn: true})
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: 1, Mtu: 1450})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 1, MacAddress: mac("02:00:00:00:00:55")})
	s.interfaces()
	s.do(&l2.BviDelete{SwIfIndex: 1})
	s.do(&l2.BviDelete{SwIfIndex: 1})
	i := s.loop()
	s.do(&l2.BviDelete{SwIfIndex: i})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 2})
	s.interfaces()
}

func pgInterfaces(s *script) {
	s.do(&pg.PgCreateInterface{InterfaceID: 3})
	s.do(&pg.PgCreateInterface{InterfaceID: 3})
	s.do(&pg.PgCreateInterfaceV3{InterfaceID: 1})
	s.interfaces()
	s.up(1)
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: 1, Mtu: 1500})
	s.do(&interfaces.SwInterfaceSetPromisc{SwIfIndex: 1, PromiscOn: true})
	s.interfaces()
	s.do(&pg.PgDeleteInterface{SwIfIndex: 1})
	s.do(&pg.PgDeleteInterface{SwIfIndex: 1})
	s.interfaces()
}

// protocol sends requests that violate the protocol.
func protocol(s *script) {
	c := dialRaw(s.t, s.socket)
	ping := func() []byte { return c.encode(s.t, &memclnt.ControlPing{}, 4711) }
	check := func(what string, bytes []byte) {
		if _, err := c.conn.Write(append(bytes, ping()...)); err != nil {
			s.t.Fatal(err)
		}
		c.conn.SetReadDeadline(time.Now().Add(time.Minute))
		var header [16]byte
		if _, err := io.ReadFull(c.r, header[:]); err != nil {
			s.line("%s: connection ends", what)
			return
		}
		msg := make([]byte, binary.BigEndian.Uint32(header[8:]))
		io.ReadFull(c.r, msg)
		s.line("%s: next answer is the ping's: %v", what, binary.BigEndian.Uint32(msg[2:]) == 4711)
	}
	check("nothing", nil)
	unknown := ping()
	binary.BigEndian.PutUint16(unknown[16:], 60000)
	check("unknown id", unknown)
	reply := ping()
	binary.BigEndian.PutUint16(reply[16:], c.ids["control_ping_reply_f6b0b8ca"])
	check("a reply as a request", reply)
	route := c.encode(s.t, benchRoute(1), 1)
	binary.BigEndian.PutUint32(route[8:], uint32(len(route)-16-20))
	check("truncated", route[:len(route)-20])
	otherClient := c.encode(s.t, &ip.IPTableDump{}, 1)
	binary.BigEndian.PutUint32(otherClient[18:], 1<<31|200)
	check("another client's index", otherClient)
}

// fatal sends a request that crashes VPP.
func (s *script) fatal(m api.Message) {
	c := dialRaw(s.t, s.socket)
	if _, err := c.conn.Write(c.encode(s.t, m, 1)); err != nil {
		s.t.Fatal(err)
	}
	c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := c.r.Read(make([]byte, 100))
	s.line("%s: dead: %v", m.GetMessageName(), n == 0 && err != nil && !strings.Contains(err.Error(), "timeout"))
}
