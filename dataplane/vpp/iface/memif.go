package iface

import (
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/memif"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

const (
	memifSecretMax = 23
	memifSocketMax = 106 // VPP 25.10 exits if it cannot listen on the socket of a new master
	memifQueueMax  = 255
	// unknownText and unknownNumber replace, in dumped values, what VPP does not report.
	unknownText   = "?"
	unknownNumber = kit.None
)

func memifType() *ifType {
	return &ifType{
		fixedMAC: true,
		mtu:      9000,
		validate: validateMemif,
		create:   createMemif,
		equal:    equalMemif,
		read:     readMemif,
		remove:   removeMemif,
	}
}

func validateMemif(v *vpp_interfaces.Interface, f *kit.Faults) {
	m := v.GetMemif()
	switch {
	case len(m.GetSocketFilename()) > memifSocketMax:
		f.Add("memif.socket_filename", "is longer than %d characters", memifSocketMax)
	case m.GetSocketFilename() != "" && !strings.HasPrefix(m.GetSocketFilename(), "/"):
		f.Add("memif.socket_filename", "%q is not an absolute path", m.GetSocketFilename())
	}
	if i := strings.IndexFunc(m.GetSocketFilename(), notInSocketName); i >= 0 {
		f.Add("memif.socket_filename", "%q has a character that VPP does not read in names of sockets: use letters, digits, and the characters / _ - .",
			m.GetSocketFilename())
	}
	if len(m.GetSecret()) > memifSecretMax {
		f.Add("memif.secret", "is longer than %d characters", memifSecretMax)
	}
	if !kit.IsPowerOf2(m.GetRingSize()) || m.GetRingSize() > 1<<15 {
		f.Add("memif.ring_size", "%d is not a power of two up to 32768", m.GetRingSize())
	}
	if m.GetBufferSize() > 65535 {
		f.Add("memif.buffer_size", "%d is more than 65535", m.GetBufferSize())
	}
	if m.GetRxQueues() > memifQueueMax {
		f.Add("memif.rx_queues", "%d is more than %d", m.GetRxQueues(), memifQueueMax)
	}
	if m.GetTxQueues() > memifQueueMax {
		f.Add("memif.tx_queues", "%d is more than %d", m.GetTxQueues(), memifQueueMax)
	}
	switch m.GetMode() {
	case vpp_interfaces.MemifLink_ETHERNET:
	case vpp_interfaces.MemifLink_IP:
		if v.PhysAddress != "" {
			f.Add("phys_address", "not supported for a memif in IP mode")
		}
	default:
		f.Add("memif.mode", "%s is not supported by VPP", m.GetMode())
	}
}

// notInSocketName reports whether VPP 25.10 stops parsing the name of a socket at this character, and exits.
func notInSocketName(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("/_-.", r)
}

func createMemif(k *Descriptors, v *vpp_interfaces.Interface, done func(made, error)) {
	m := v.GetMemif()
	k.memifSocket(m.GetSocketFilename(), func(socket uint32, err error) {
		if err != nil {
			done(made{}, fmt.Errorf("socket %s: %w", m.GetSocketFilename(), err))
			return
		}
		conn.Call(k.Lane, memifRequest(v, socket), func(r *memif.MemifCreateV2Reply, err error) {
			switch {
			case conn.IsRetval(err, api.SUBIF_ALREADY_EXISTS):
				k.adoptMemif(m, socket, err, done)
			case err != nil:
				done(made{}, err)
			default:
				done(made{index: uint32(r.SwIfIndex), socket: socket, hasMAC: true}, nil)
			}
		})
	})
}

func memifRequest(v *vpp_interfaces.Interface, socket uint32) *memif.MemifCreateV2 {
	m := v.GetMemif()
	req := &memif.MemifCreateV2{
		Role: memif.MEMIF_ROLE_API_SLAVE, Mode: memif.MemifMode(m.GetMode()),
		RxQueues: uint8(m.GetRxQueues()), TxQueues: uint8(m.GetTxQueues()),
		ID: m.GetId(), SocketID: socket, RingSize: m.GetRingSize(), BufferSize: uint16(m.GetBufferSize()),
		Secret: m.GetSecret(),
	}
	if m.GetMaster() {
		req.Role = memif.MEMIF_ROLE_API_MASTER
	}
	if v.PhysAddress != "" {
		req.HwAddr = kit.MAC(v.PhysAddress)
	}
	return req
}

// adoptMemif takes over a memif that VPP already has because the reply to its creation was lost.
func (k *Descriptors) adoptMemif(m *vpp_interfaces.MemifLink, socket uint32, cause error, done func(made, error)) {
	found := kit.None
	conn.Dump(k.Lane, &memif.MemifDump{}, func(d *memif.MemifDetails) {
		role := d.Role == memif.MEMIF_ROLE_API_MASTER
		if d.SocketID == socket && d.ID == m.GetId() && role == m.GetMaster() && uint32(d.Mode) == uint32(m.GetMode()) {
			found = uint32(d.SwIfIndex)
		}
	}, func(err error) {
		if err == nil {
			err = k.adoptable(found, cause)
		}
		done(made{index: found, socket: socket}, err)
	})
}

// adoptable returns nil if an interface that VPP already has may be taken over: it must not be another one of ours.
func (k *Descriptors) adoptable(index uint32, cause error) error {
	if index == kit.None {
		return cause
	}
	name, ok := k.idx.NameByIndex(index)
	if ok && isLeftover(name) {
		k.idx.remove(name)
		return nil
	}
	if ok {
		return fmt.Errorf("%w: it is interface %s", cause, name)
	}
	return nil
}

// socketWait holds the callbacks that wait for the number of one socket.
type socketWait []func(uint32, error)

// memifSocket calls done with VPP's number of a socket file, and registers the file in VPP if necessary.
func (k *Descriptors) memifSocket(file string, done func(uint32, error)) {
	if file == "" {
		done(0, nil)
		return
	}
	waiting, busy := k.sockets[file]
	k.sockets[file] = append(waiting, done)
	if busy {
		return
	}
	id := kit.None
	conn.Dump(k.Lane, &memif.MemifSocketFilenameDump{}, func(d *memif.MemifSocketFilenameDetails) {
		if d.SocketFilename == file {
			id = d.SocketID
		}
	}, func(err error) {
		if err != nil || id != kit.None {
			k.socketKnown(file, id, err)
			return
		}
		req := &memif.MemifSocketFilenameAddDelV2{IsAdd: true, SocketID: kit.None, SocketFilename: file}
		conn.Call(k.Lane, req, func(r *memif.MemifSocketFilenameAddDelV2Reply, err error) {
			if err == nil {
				id = r.SocketID
			}
			k.socketKnown(file, id, err)
		})
	})
}

func (k *Descriptors) socketKnown(file string, id uint32, err error) {
	waiting := k.sockets[file]
	delete(k.sockets, file)
	for _, done := range waiting {
		done(id, err)
	}
}

// removeMemif removes the interface and, if it was the last one on its socket, the socket.
func removeMemif(k *Descriptors, e *ifEntry, _ *vpp_interfaces.Interface, done func(error)) {
	both := kit.Join(2, done)
	conn.Call(k.Lane, &memif.MemifDelete{SwIfIndex: interface_types.InterfaceIndex(e.Index)},
		func(_ *memif.MemifDeleteReply, err error) { both(err) })
	if e.socket == 0 {
		both(nil)
		return
	}
	req := &memif.MemifSocketFilenameAddDelV2{SocketID: e.socket}
	conn.Call(k.Lane, req, func(_ *memif.MemifSocketFilenameAddDelV2Reply, err error) {
		if conn.IsRetval(err, api.UNEXPECTED_INTF_STATE, api.INVALID_ARGUMENT) { // in use, or gone
			err = nil
		}
		both(err)
	})
}

func equalMemif(_ *Descriptors, desired, applied *vpp_interfaces.Interface) bool {
	d, a := desired.GetMemif(), applied.GetMemif()
	if d == a {
		return true
	}
	return d.GetMode() == a.GetMode() && d.GetMaster() == a.GetMaster() && d.GetId() == a.GetId() &&
		d.GetSocketFilename() == a.GetSocketFilename() &&
		(a.GetSecret() == unknownText || a.GetSecret() == d.GetSecret()) &&
		sameOrUnknown(d.GetRingSize(), a.GetRingSize()) && sameOrUnknown(d.GetBufferSize(), a.GetBufferSize()) &&
		sameOrUnknown(d.GetRxQueues(), a.GetRxQueues()) && sameOrUnknown(d.GetTxQueues(), a.GetTxQueues())
}

func sameOrUnknown(desired, applied uint32) bool {
	return applied == unknownNumber || desired == applied
}

// readMemif reads a memif from a dump. VPP reports the sizes negotiated with a connected peer, and no sizes before that; it
// never reports the requested sizes.
func readMemif(_ *Descriptors, s *ifState, v *vpp_interfaces.Interface) bool {
	if s.memif == nil {
		return false
	}
	link := &vpp_interfaces.MemifLink{
		Mode: vpp_interfaces.MemifLink_MemifMode(s.memif.Mode), Master: s.memif.Role == memif.MEMIF_ROLE_API_MASTER,
		Id: s.memif.ID, SocketFilename: s.socketFile, Secret: unknownText, RingSize: unknownNumber,
		BufferSize: unknownNumber, RxQueues: unknownNumber, TxQueues: unknownNumber,
	}
	v.Link = &vpp_interfaces.Interface_Memif{Memif: link}
	return true
}
