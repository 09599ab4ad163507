//go:build linux

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"contiv.dev/vswitch/plugins/pathwatch"
)

// linuxPath is the data path through the host's own stack. Of its links, only the device is checked.
type linuxPath struct {
	a      *agent
	uplink string
	found  time.Time
}

// uplinkEvery is the interval between look-ups of the device that has the default route.
const uplinkEvery = 30 * time.Second

// Programmed implements pathwatch.Dataplane.
func (p *linuxPath) Programmed() bool {
	ok, _ := p.a.controller.Ready()
	return ok && p.a.dataplane.health.alive() == nil
}

// Alive implements pathwatch.Dataplane.
func (p *linuxPath) Alive(context.Context) error { return nil }

// Links implements pathwatch.Dataplane.
func (p *linuxPath) Links(context.Context) (uplink, host *pathwatch.Link, err error) {
	if time.Since(p.found) > uplinkEvery {
		p.uplink = uplinkName(p.a.ipnet.MainInterface(), p.a.host.NIC)
		p.found = time.Now()
	}
	if p.uplink == "" {
		return nil, nil, nil
	}
	link := &pathwatch.Link{}
	readDevice(link, p.uplink)
	// The kernel processes all packets that arrive and sends all that it has, so the counters are equal.
	link.Taken, link.Offered, link.Counts = link.Brought, link.Sent, false
	return link, nil, nil
}

// connectionMax is the file with the number of connections that the kernel may track.
const connectionMax = "/proc/sys/net/netfilter/nf_conntrack_max"

// tracked reports the connections that the kernel tracks.
type tracked struct{}

// Sessions implements pathwatch.SessionTable.
func (tracked) Sessions() pathwatch.Sessions {
	used, err := trackedConnections()
	text, maxErr := os.ReadFile(connectionMax)
	if err != nil || maxErr != nil {
		return pathwatch.Sessions{}
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return pathwatch.Sessions{}
	}
	return pathwatch.Sessions{Used: uint64(used), Limit: limit}
}

// readDevice reads the kernel's data about the device of a link. It returns the number of frames that the device could not send.
func readDevice(link *pathwatch.Link, dev string) (dropped uint64) {
	link.Device = dev
	l, err := netlink.LinkByName(dev)
	if err != nil {
		var gone netlink.LinkNotFoundError
		link.Present = !errors.As(err, &gone)
		return 0
	}
	attrs := l.Attrs()
	link.Present = attrs.Flags&net.FlagUp != 0
	// A device that does not report its state counts as having a carrier.
	link.Carrier = attrs.OperState != netlink.OperDown && attrs.OperState != netlink.OperLowerLayerDown
	if n := attrs.Statistics; n != nil {
		link.Counts, link.Sent, link.Brought = true, n.TxPackets, n.RxPackets
		dropped = n.TxDropped
	}
	return dropped
}
