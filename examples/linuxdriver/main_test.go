package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestBlockList checks that two pods ping each other through the driver, until one is on the block
// list.
func TestBlockList(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	host := fmt.Sprintf("ex%d-host", os.Getpid())
	sh := func(lines string) {
		t.Helper()
		for line := range strings.Lines(strings.TrimSpace(lines)) {
			if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
		}
	}
	sh(fmt.Sprintf("ip netns add %[1]s\nip netns exec %[1]s sysctl -qw net.ipv4.ip_forward=1", host))
	t.Cleanup(func() { sh("ip netns del " + host) })
	for i := 1; i <= 2; i++ {
		pod := fmt.Sprintf("ex%d-pod%d", os.Getpid(), i)
		sh(fmt.Sprintf(`ip netns add %[1]s
ip -n %[2]s link add pod%[3]d up type veth peer name eth0 netns %[1]s
ip -n %[1]s addr add 10.65.0.%[3]d/32 dev eth0
ip -n %[1]s link set eth0 up
ip -n %[1]s route add 169.254.1.1 dev eth0
ip -n %[1]s route add default via 169.254.1.1
ip -n %[2]s addr add 169.254.1.1/32 dev pod%[3]d`, pod, host, i))
		t.Cleanup(func() { sh("ip netns del " + pod) })
	}
	d, err := start(host)
	if err != nil {
		t.Fatal(err)
	}
	defer d.stop()
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 65, 0, byte(i)}) }
	for i := 1; i <= 2; i++ {
		if err := d.pod(fmt.Sprintf("pod%d", i), addr(i)); err != nil {
			t.Fatal(err)
		}
	}
	ping := func(count string) error {
		return exec.Command("ip", "netns", "exec", fmt.Sprintf("ex%d-pod1", os.Getpid()), "ping", "-c", count, "-i", "0.2", "-w", "5",
			addr(2).String()).Run()
	}
	if err := ping("1"); err != nil {
		t.Errorf("before it is blocked: %v", err)
	}
	if err := d.send(&block{addr(1)}); err != nil {
		t.Fatal(err)
	}
	if err := ping("1"); err == nil {
		t.Error("the blocked pod's packets pass")
	}
	if s := d.health.Summary(); !s.Live || !s.Ready {
		t.Errorf("health %+v", s)
	}
}
