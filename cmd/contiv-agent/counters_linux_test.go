package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/ipnet"
)

// TestCountersWhilePodsComeAndGo: a list of links is incomplete if a link is added or removed while it is read. This is not an error.
func TestCountersWhilePodsComeAndGo(t *testing.T) {
	const there = 50
	ready, fd := make(chan error, 1), make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() { // links are added and removed in a namespace that ends with this thread
		runtime.LockOSThread()
		ns := -1
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			ns, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		for i := 0; i < there && err == nil; i++ {
			err = netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("old%d", i)}})
		}
		if ready <- err; err != nil {
			return
		}
		fd <- ns
		for i := 0; ctx.Err() == nil; i++ {
			link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("new%d", i)}}
			if netlink.LinkAdd(link) == nil {
				_ = netlink.LinkDel(link)
			}
		}
	})
	if err := <-ready; err != nil {
		t.Skipf("SKIP: no network namespaces here: %v", err)
	}
	result := make(chan error, 1)
	work.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		ns := <-fd
		defer unix.Close(ns)
		if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		for range 100 {
			links, err := listLinks()
			if err == nil && len(links) == 0 {
				err = errors.New("no links")
			}
			if err != nil {
				result <- err
				return
			}
		}
		result <- nil
	})
	if err := <-result; err != nil {
		t.Errorf("counters cannot be read: %v", err)
	}
}

// TestKernelCounters: the counters of pods, of the overlay and of the uplink are exported, whether the uplink is configured or found by the
// default route; others are not.
func TestKernelCounters(t *testing.T) {
	link := func(name string, rx uint64) netlink.Link {
		return &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: name, Statistics: &netlink.LinkStatistics{RxPackets: rx}}}
	}
	vxlan := &netlink.Vxlan{LinkAttrs: *link("contiv-vxlan", 4).Attrs()}
	links := []netlink.Link{link("lo", 1), link("eth0", 2), link("eth1", 3), vxlan, link("cali1", 5)}
	pods := map[string]diag.Pod{"cali1": {Namespace: "default", Name: "web"}}
	for configured, want := range map[string]string{
		"": "eth0:2 contiv-vxlan:4 cali1:5", "eth1": "eth1:3 contiv-vxlan:4 cali1:5",
	} {
		main := uplinkName(configured, func(name string) (ipnet.NIC, error) {
			if name != "" {
				return ipnet.NIC{Name: name}, nil
			}
			return ipnet.NIC{Name: "eth0"}, nil // eth0 has the default route
		})
		got := ""
		for _, c := range countersOf(links, pods, main) {
			if got != "" {
				got += " "
			}
			got += fmt.Sprintf("%s:%d", c.Interface, c.RxPackets)
			if c.Interface == "cali1" && c.Pod != "web" {
				t.Errorf("%+v", c)
			}
		}
		if got != want {
			t.Errorf("uplink %q: %s, want %s", configured, got, want)
		}
	}
}
