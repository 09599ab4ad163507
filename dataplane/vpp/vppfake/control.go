package vppfake

import (
	"fmt"
	"strings"
	"time"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/binapi/vpe_types"
)

// firstPID is the process id of VPP after its first boot.
const firstPID = 1000

// pingName is the message that clients send after a dump, to detect its end.
const pingName = "control_ping"

func registerControl(t *table) {
	create := on(t, reads, sockclntCreate)
	create.fixed, create.id = true, sockclntCreateID
	reply := t.byName["sockclnt_create_reply"]
	reply.fixed, reply.id = true, sockclntCreateReplyID
	on(t, reads, sockclntDelete)
	on(t, reads, func(*call, *memclnt.MemclntKeepalive) *memclnt.MemclntKeepaliveReply {
		return &memclnt.MemclntKeepaliveReply{}
	})
	on(t, reads, func(c *call, _ *memclnt.ControlPing) *memclnt.ControlPingReply {
		return &memclnt.ControlPingReply{VpePID: c.pid()}
	})
	on(t, reads, apiVersions)
	on(t, reads, func(c *call, _ *vpe.ShowVersion) *vpe.ShowVersionReply {
		return &vpe.ShowVersionReply{Program: "vpe", Version: c.cfg.Version, BuildDate: "2025-10-29T00:00:00", BuildDirectory: "vppfake"}
	})
	on(t, reads, func(*call, *vpe.ShowVpeSystemTime) *vpe.ShowVpeSystemTimeReply {
		return &vpe.ShowVpeSystemTimeReply{VpeSystemTime: vpe_types.Timestamp(float64(time.Now().UnixNano()) / 1e9)}
	})
	on(t, reads, showThreads)
	on(t, reads, func(c *call, q *vlib.CliInband) *vlib.CliInbandReply {
		text, ok := c.cli(strings.Join(strings.Fields(q.Cmd), " "))
		if !ok {
			return &vlib.CliInbandReply{Retval: rvUnspecified, Reply: fmt.Sprintf("%s: unknown input `%s'\n", "vppfake", q.Cmd)}
		}
		return &vlib.CliInbandReply{Reply: text}
	})
}

func (st *state) pid() uint32 { return firstPID + st.boot }

// sockclntCreate sends the client its handle and the message table.
func sockclntCreate(c *call, _ *memclnt.SockclntCreate) *memclnt.SockclntCreateReply {
	r := &memclnt.SockclntCreateReply{Index: c.session.index}
	for _, e := range c.table.rows() {
		r.MessageTable = append(r.MessageTable, memclnt.MessageTableEntry{Index: e.id, Name: e.name() + "_" + e.msg.GetCrcString()})
	}
	r.Count = uint16(len(r.MessageTable))
	return r
}

// sockclntDelete returns 1 for success and closes the connection, as VPP does.
func sockclntDelete(c *call, q *memclnt.SockclntDelete) *memclnt.SockclntDeleteReply {
	if q.Index != c.session.index {
		return &memclnt.SockclntDeleteReply{Response: -1}
	}
	c.hangup = true
	return &memclnt.SockclntDeleteReply{Response: 1}
}

func showThreads(c *call, _ *vlib.ShowThreads) *vlib.ShowThreadsReply {
	r := &vlib.ShowThreadsReply{Count: uint32(1 + c.cfg.Workers), ThreadData: []vlib.ThreadData{{Name: "vpp_main", PID: c.pid()}}}
	for n := range c.cfg.Workers {
		r.ThreadData = append(r.ThreadData, vlib.ThreadData{ID: uint32(n + 1), Name: fmt.Sprintf("vpp_wk_%d", n), Type: "workers", PID: c.pid()})
	}
	return r
}

func apiVersions(c *call, _ *memclnt.APIVersions) *memclnt.APIVersionsReply {
	names := []string{"interface.api", "ip.api", "l2.api", "memclnt.api", "vpe.api"}
	r := &memclnt.APIVersionsReply{Count: uint32(len(names))}
	for _, name := range names {
		r.APIVersions = append(r.APIVersions, memclnt.ModuleVersion{Major: 3, Name: name})
	}
	return r
}

// cli executes the few commands that programs use; false: unknown command.
func (st *state) cli(cmd string) (string, bool) {
	switch cmd {
	case "show version":
		return fmt.Sprintf("vpp v%s built by vppfake\n", st.cfg.Version), true
	case "show interface", "show int":
		return st.showInterface(), true
	case "show interface addr", "show interface address", "show int addr":
		return st.showAddresses(), true
	case "show errors", "show error", "show log", "clear errors", "clear runtime", "show runtime", "show buffers", "show memory main-heap":
		return "", true
	}
	return "", false
}

func (st *state) showInterface() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-32s %-6s%-8s%s\n", "              Name", "Idx", "State", "MTU (L3/IP4/IP6/MPLS)")
	for _, i := range st.live() {
		state := "down"
		if i.up {
			state = "up"
		}
		fmt.Fprintf(&b, "%-32s %-6d%-8s%d/%d/%d/%d\n", i.name, i.index, state, i.mtu[0], i.mtu[1], i.mtu[2], i.mtu[3])
	}
	return b.String()
}

func (st *state) showAddresses() string {
	var b strings.Builder
	for _, i := range st.live() {
		state := "dn"
		if i.up {
			state = "up"
		}
		fmt.Fprintf(&b, "%s (%s):\n", i.name, state)
		if i.l2.bd != nil {
			fmt.Fprintf(&b, "  L2 bridge bd-id %d idx %d shg %d\n", i.l2.bd.id, i.l2.bd.index, i.l2.shg)
		}
		if i.unnumbered != none {
			fmt.Fprintf(&b, "  unnumbered, use %s\n", st.iface(interface_types.InterfaceIndex(i.unnumbered)).label())
		}
		for _, port := range i.ip {
			for _, p := range port.addrs {
				fmt.Fprintf(&b, "  L3 %s\n", p)
			}
		}
	}
	return b.String()
}
