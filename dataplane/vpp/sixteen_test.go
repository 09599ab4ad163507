package vpp

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/memclnt"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// VPP 25.10 freezes permanently as soon as 16 af_packet interfaces have packets that it has not read yet. With epollshim it does
// not.
func TestSixteenReadySockets(t *testing.T) {
	const devices = 20
	for _, stock := range []bool{false, true} {
		t.Run(map[bool]string{true: "stock", false: "epollshim"}[stock], func(t *testing.T) {
			v := vpptest.Start(t, vpptest.Options{Stock: stock})
			for i := range devices {
				veth(t, fmt.Sprintf("cvsixa%d", i), fmt.Sprintf("cvsixb%d", i))
			}
			err := attachAll(t, v, devices)
			switch {
			case !stock && err != nil:
				t.Errorf("with epollshim: %v", err)
			case stock && err == nil:
				t.Log("this VPP does not need epollshim any more")
			case stock:
				t.Logf("as expected: %v", err)
			}
		})
	}
}

// attachAll attaches VPP to devices that have packets to read, and returns an error if VPP does not respond afterwards. The
// interfaces stay down, so that VPP reads no packets.
func attachAll(t *testing.T, v *vpptest.VPP, devices int) error {
	a := newAgent(t, &target{socket: v.Socket(), real: v}, Deps{})
	for i := range devices {
		var err error
		rings := iface.AfPacketRings{RxFrames: 16, TxFrames: 16}
		conn.Call(a.lane, iface.AfPacketRequest(fmt.Sprintf("cvsixa%d", i), 1500, rings),
			func(_ *af_packet.AfPacketCreateV3Reply, e error) { err = e })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		a.lane.Flush(ctx)
		cancel()
		if err != nil {
			return fmt.Errorf("interface %d: %w", i, err)
		}
		// A host that joins IPv6 groups announces it on the link.
		run(t, fmt.Sprintf("ip link set cvsixb%d down && ip link set cvsixb%d up", i, i))
	}
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		err := a.conn.Invoke(ctx, &memclnt.ControlPing{}, &memclnt.ControlPingReply{})
		cancel()
		if err != nil {
			return errors.Join(errors.New("VPP does not respond"), err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}
