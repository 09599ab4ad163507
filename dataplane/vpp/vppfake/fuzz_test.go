package vppfake_test

import (
	"encoding/binary"
	"net"
	"path/filepath"
	"testing"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memclnt"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// FuzzSocket tests that the fake survives any input of a client and serves the next client. The input is split into messages with correct
// headers and existing ids, since otherwise it would not get past the framing; with raw it is written unchanged.
func FuzzSocket(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(make([]byte, 300), false)
	f.Add(frame([]byte{0, 15, 0, 0, 0, 1}), true)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, true)
	seed := &vppfakeSeed{}
	f.Add(seed.bytes(f), false)
	f.Fuzz(func(t *testing.T, data []byte, raw bool) {
		fake := vppfake.New(vppfake.Config{})
		defer fake.Close()
		socket := filepath.Join(t.TempDir(), "s")
		if err := fake.Listen(socket); err != nil {
			t.Skip(err)
		}
		if raw {
			writeRaw(t, socket, data)
		} else {
			writeMessages(t, socket, data)
		}
		c := dialAfterCrash(t, socket)
		if _, err := c.conn.Write(c.encode(t, &memclnt.ControlPing{}, 1)); err != nil {
			t.Fatal(err)
		}
		c.read(t)
	})
}

// dialAfterCrash retries while a fake that its input has just crashed is starting.
func dialAfterCrash(t *testing.T, socket string) *rawClient {
	t.Helper()
	for range 100 {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			break
		}
		time.Sleep(time.Millisecond) // the restart sends no notification
	}
	return dialRaw(t, socket)
}

func writeRaw(t *testing.T, socket string, data []byte) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write(data) //nolint:errcheck // the fake may hang up
	conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	conn.Read(make([]byte, 1000)) //nolint:errcheck // as above
}

// writeMessages takes each message from data: one byte selects the id, another one the length.
func writeMessages(t *testing.T, socket string, data []byte) {
	c := dialRaw(t, socket)
	ids := make([]uint16, 0, len(c.ids))
	for id := range uint16(len(c.ids)) {
		ids = append(ids, id+20)
	}
	for count := 0; len(data) >= 2 && count < 100; count++ {
		id, n := ids[int(data[0])%len(ids)], min(int(data[1]), len(data)-2)
		msg := binary.BigEndian.AppendUint16(nil, id)
		msg = binary.BigEndian.AppendUint32(msg, c.index)
		msg = binary.BigEndian.AppendUint32(msg, 1)
		msg = append(msg, data[2:2+n]...)
		if _, err := c.conn.Write(frame(append(msg, make([]byte, 400)...))); err != nil {
			return // disconnected, or crashed like VPP
		}
		data = data[2+n:]
	}
	c.conn.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
	c.conn.Read(make([]byte, 1000)) //nolint:errcheck // as above
}

// vppfakeSeed is an initial input with real requests.
type vppfakeSeed struct{}

func (vppfakeSeed) bytes(f *testing.F) (out []byte) {
	for _, m := range []interface{ Marshal([]byte) ([]byte, error) }{
		&interfaces.CreateLoopback{}, &ip.IPRouteAddDelV2{IsAdd: true}, &l2.BridgeDomainAddDelV2{IsAdd: true, BdID: 1},
	} {
		b, err := m.Marshal(nil)
		if err != nil {
			f.Fatal(err)
		}
		out = append(append(out, 0, byte(len(b))), b...)
	}
	return out
}
