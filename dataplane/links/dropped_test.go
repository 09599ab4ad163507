package links

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTapsDropped tests that packets that a TAP's reader does not take are counted, in the agent's namespace and in a pod's. For a missing TAP
// the count is 0.
func TestTapsDropped(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	here, there := w.dev("h"), w.dev("p")
	for _, name := range []string{here, there} {
		tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tun.Close() })
		ifr, err := unix.NewIfreq(name)
		if err != nil {
			t.Fatal(err)
		}
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(int(tun.Fd()), unix.TUNSETIFF, ifr); err != nil {
			t.Fatal(err)
		}
	}
	w.run("ip", "link", "set", there, "netns", ns)
	const commands = `ip addr add 198.18.90.1/24 dev $1; ip link set $1 txqueuelen 8 up
		ip neigh replace 198.18.90.2 lladdr 02:00:00:00:00:02 dev $1 nud permanent
		for i in $(seq $2); do echo x > /dev/udp/198.18.90.2/9; done`
	w.run("bash", "-c", commands, "-", here, "40")
	w.runIn(ns, "bash", "-c", commands, "-", there, "100")
	got := NewHostMonitor(nil).TapsDropped([]TapAt{{Device: here}, {ns, there}, {ns, here}, {"/run/netns/no-such", there}})
	if got[0] < 20 || got[0] > 40 || got[1] < 80 || got[1] > 120 || got[2] != 0 || got[3] != 0 {
		t.Errorf("%v packets dropped", got)
	}
}
