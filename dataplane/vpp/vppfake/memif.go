package vppfake

import (
	"fmt"
	"math/bits"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/memif"
)

// memifs holds the memif sockets by id; socket 0 always exists.
type memifs struct {
	sockets map[uint32]*memifSocket
	seed    uint32 // of the ids that VPP generates
}

type memifSocket struct {
	file   string
	master bool
	ifs    map[uint32]*iface
}

// memifPort is VPP's record of one memif.
type memifPort struct {
	id, socket uint32
	role       memif.MemifRole
	mode       memif.MemifMode
	zeroCopy   bool
}

func (m *memifs) start() {
	m.sockets = map[uint32]*memifSocket{0: {file: "/run/vpp/memif.sock", ifs: map[uint32]*iface{}}}
}

func registerMemif(t *table) {
	on(t, writes, memifSocketAddDel)
	dump(t, func(c *call, _ *memif.MemifSocketFilenameDump, send func(*memif.MemifSocketFilenameDetails)) {
		for _, id := range sortedKeys(c.memif.sockets) {
			send(&memif.MemifSocketFilenameDetails{SocketID: id, SocketFilename: c.memif.sockets[id].file})
		}
	})
	on(t, writes, func(c *call, q *memif.MemifCreateV2) *memif.MemifCreateV2Reply {
		rv, index := c.createMemif(q)
		return &memif.MemifCreateV2Reply{Retval: rv, SwIfIndex: index}
	})
	on(t, writes, func(c *call, q *memif.MemifCreate) *memif.MemifCreateReply {
		rv, index := c.createMemif(&memif.MemifCreateV2{Role: q.Role, Mode: q.Mode, RxQueues: q.RxQueues, TxQueues: q.TxQueues, ID: q.ID,
			SocketID: q.SocketID, RingSize: q.RingSize, BufferSize: q.BufferSize, NoZeroCopy: q.NoZeroCopy, HwAddr: q.HwAddr, Secret: q.Secret})
		return &memif.MemifCreateReply{Retval: rv, SwIfIndex: index}
	})
	on(t, writes, deleteMemif)
	dump(t, dumpMemifs)
}

func memifSocketAddDel(c *call, q *memif.MemifSocketFilenameAddDelV2) *memif.MemifSocketFilenameAddDelV2Reply {
	id := q.SocketID
	fail := func(rv int32) *memif.MemifSocketFilenameAddDelV2Reply {
		return &memif.MemifSocketFilenameAddDelV2Reply{Retval: rv, SocketID: id}
	}
	if id == 0 {
		return fail(rvInvalidArgument)
	}
	if q.IsAdd && id == none {
		for ok := true; ok; _, ok = c.memif.sockets[id] {
			c.memif.seed = lcg(c.memif.seed)
			id = c.memif.seed
		}
	}
	s := c.memif.sockets[id]
	switch {
	case !q.IsAdd && (s == nil || id == none):
		return fail(rvInvalidArgument)
	case !q.IsAdd && len(s.ifs) > 0:
		return fail(rvUnexpectedState)
	case !q.IsAdd:
		delete(c.memif.sockets, id)
	case q.SocketFilename == "":
		return fail(rvInvalidArgument)
	case s != nil && s.file != memifFile(q.SocketFilename):
		return fail(rvEntryExists)
	case s == nil:
		c.memif.sockets[id] = &memifSocket{file: memifFile(q.SocketFilename), ifs: map[uint32]*iface{}}
	}
	return fail(0)
}

// memifFile returns the absolute name that VPP uses for a relative one.
func memifFile(name string) string {
	if name[0] == '/' || name[0] == '@' || slices.Contains([]string{"abstract:", "linux:"}, name[:min(len(name), 9)]) {
		return name
	}
	return "/run/vpp/" + name
}

func (c *call) createMemif(q *memif.MemifCreateV2) (int32, interface_types.InterfaceIndex) {
	s := c.memif.sockets[q.SocketID]
	ring := q.RingSize
	if ring == 0 {
		ring = 1024
	}
	switch {
	case bits.OnesCount32(ring) != 1 || s == nil:
		return rvInvalidArgument, 0
	case len(s.ifs) > 0 && s.master != (q.Role == memif.MEMIF_ROLE_API_MASTER) || s.ifs[q.ID] != nil:
		return rvSubifExists, 0
	}
	hw := &hardware{devType: "memif"}
	if q.Mode == memif.MEMIF_MODE_API_ETHERNET {
		hw.ethernet, hw.mac, hw.macReported = true, q.HwAddr, q.HwAddr != (mac{})
		if !hw.macReported {
			hw.mac = c.randomMAC()
		}
	}
	if q.Mode > memif.MEMIF_MODE_API_IP {
		c.die("memif_create in punt-inject mode") // 25.10 cleans up an interface that it has not created yet
		return 0, 0
	}
	slave := q.Role == memif.MEMIF_ROLE_API_SLAVE
	p := &memifPort{id: q.ID, socket: q.SocketID, role: q.Role, mode: q.Mode, zeroCopy: slave && !q.NoZeroCopy}
	hw.driver = driver{setMTU: true, flags: true, detail: p, remove: func(st *state, _ *iface) { delete(s.ifs, p.id) },
		describe: func(*iface) []string { return []string{fmt.Sprintf("%s %s", p.role, p.mode)} }}
	i := c.create(&iface{name: fmt.Sprintf("memif%d/%d", q.SocketID, q.ID), hw: hw})
	s.master = !slave
	s.ifs[q.ID] = i
	return 0, interface_types.InterfaceIndex(i.index)
}

func deleteMemif(c *call, q *memif.MemifDelete) *memif.MemifDeleteReply {
	i := c.iface(q.SwIfIndex)
	if i == nil || i.hw.devType != "memif" {
		return &memif.MemifDeleteReply{Retval: rvInvalidSwIfIndex}
	}
	c.delete(i.hw.owner)
	return &memif.MemifDeleteReply{}
}

// dumpMemifs returns the values that VPP shows for a memif without a connected peer: ring size 1, buffer size 0.
func dumpMemifs(c *call, _ *memif.MemifDump, send func(*memif.MemifDetails)) {
	for _, i := range c.live() {
		p, ok := i.hw.driver.detail.(*memifPort)
		if !ok || i.sub != nil {
			continue
		}
		send(&memif.MemifDetails{SwIfIndex: interface_types.InterfaceIndex(i.index), HwAddr: i.hw.mac, ID: p.id, Role: p.role, Mode: p.mode,
			ZeroCopy: p.zeroCopy, SocketID: p.socket, RingSize: 1, Flags: i.status(), IfName: i.name})
	}
}

func dumpMemifSockets(st *state, d *dumper) {
	for id, s := range st.memif.sockets {
		if id != 0 {
			d.add("memif socket %d %s", id, s.file)
		}
	}
}
