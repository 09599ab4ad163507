package vpp

import (
	"testing"

	"go.fd.io/govpp/binapi/pipe"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

func pipeEndOf(name, first string, change ...func(*vpp_interfaces.Interface)) *vpp_interfaces.Interface {
	v := &vpp_interfaces.Interface{
		Name: name, Type: vpp_interfaces.Interface_PIPE, Enabled: true,
		Link: &vpp_interfaces.Interface_Pipe{Pipe: &vpp_interfaces.PipeLink{FirstEnd: first}},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

// TestPipe checks that both ends of a pipe have the properties of interfaces, and that routes and NAT can use
// them.
func TestPipe(t *testing.T) {
	base := all(tables(1, "pod"), tables(2, "other"), values{
		loop("gw", "02:00:00:00:01:01", withIP("10.1.0.1/24", "fd00:1::1/64")),
	})
	through := func(out string) *vpp_l3.Route {
		return &vpp_l3.Route{VrfId: 1, DstNetwork: "0.0.0.0/0", OutgoingInterface: out}
	}
	down := func(v *vpp_interfaces.Interface) { v.Enabled = false }
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, natOn(), values{
				pipeEndOf("in", ""), pipeEndOf("out", "in", unnumberedTo("gw")), through("in"),
				&vpp_nat.Nat44Interface{Name: "in", OutputFeature: true},
			}),
			all(base, values{ // other tables, its own address, one end down
				pipeEndOf("in", "", inTable(1), down), pipeEndOf("out", "in", inTable(2), withIP("10.7.0.1/24")), through("in"),
			}),
			all(base, values{pipeEndOf("in", "", inTable(1))}), // the other end is no longer needed
			all(base, values{ // another pipe, whose ends exchange their names
				pipeEndOf("in", "out", unnumberedTo("gw")), pipeEndOf("out", ""), through("out"),
			}),
		)
	})
}

// TestPipeNotAnswered checks that a pipe whose creation was not answered is taken over, and that another
// program's pipe is kept.
func TestPipeNotAnswered(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		a.resync(pipeEndOf("in", ""), pipeEndOf("out", "in"))
		var instance uint32
		conn.Dump(a.lane, &pipe.PipeDump{}, func(d *pipe.PipeDetails) { instance = d.Instance }, func(error) {})
		a.lane.Flush(t.Context())
		a.resync()
		other := &pipe.PipeCreateReply{}
		a.invoke(&pipe.PipeCreate{}, other)
		a.invoke(&pipe.PipeCreate{IsSpecified: true, UserInstance: instance}, &pipe.PipeCreateReply{})
		a.resync(pipeEndOf("in", ""), pipeEndOf("out", "in"))
		if index, ok := a.idx.IfIndex("in"); !ok || index == uint32(other.PipeSwIfIndex[0]) {
			t.Errorf("in is interface %d, %v; another program's is %v", index, ok, other.PipeSwIfIndex)
		}
		a.mustNotWrite("taken over", values{pipeEndOf("in", ""), pipeEndOf("out", "in")})
		a.resync()
		left := 0
		lane := a.conn.Lane()
		conn.Dump(lane, &pipe.PipeDump{}, func(*pipe.PipeDetails) { left++ }, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		lane.Flush(t.Context())
		if left != 1 {
			t.Errorf("%d pipes are left, want only another program's", left)
		}
	})
}
