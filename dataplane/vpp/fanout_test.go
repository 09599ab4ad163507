package vpp

import (
	"net"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"golang.org/x/sys/unix"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// TestFanoutTaken checks the case that another program has the fanout group that VPP would use. The error names the cause and the fix; once the
// program has ended, a retry succeeds.
func TestFanoutTaken(t *testing.T) {
	af := afPacket("af", "cvfan0")
	af.RxPlacements = []*vpp_interfaces.Interface_RxPlacement{{Queue: 0, Worker: 0}, {Queue: 1, Worker: 1}}
	onVPP(t, vpptest.Options{Workers: 2}, func(t *testing.T, g *target) {
		free := func() { g.fake.Faults.Clear() }
		if g.real != nil {
			veth(t, "cvfan0", "cvfan1")
			veth(t, "cvfan2", "cvfan3")
			free = holdGroups(t, "cvfan2")
		} else {
			g.fake.Faults.Add(vppfake.Fault{Message: "af_packet_create_v3", Retval: int32(api.SYSCALL_ERROR_1)})
		}
		a := newAgent(t, g, Deps{})
		err := a.tries(txn.FullResync, af)
		if err == nil || !strings.Contains(err.Error(), "may use the same packet fanout group; VPP's log has the number; stop that program") {
			t.Errorf("error %v", err)
		}
		free()
		a.resync(af)
		a.mustNotWrite("with queues", values{af})
	})
}

// holdGroups occupies all fanout groups that VPP may use for its first interface: the upper byte is a hash of the device's name.
func holdGroups(t *testing.T, device string) (free func()) {
	t.Helper()
	link, err := net.InterfaceByName(device)
	if err != nil {
		t.Fatal(err)
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8 // in network byte order
	var fds []int
	free = func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		fds = nil
	}
	t.Cleanup(free)
	for hash := range 256 {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: link.Index, Protocol: all})
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, hash<<8|unix.PACKET_FANOUT_HASH<<16)
		}
		if err != nil {
			t.Fatalf("group %d: %v", hash<<8, err)
		}
	}
	return free
}
