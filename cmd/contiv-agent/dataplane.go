package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/pool"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// dataplane is VPP (or its fake), Linux, and the scheduler that programs both.
type dataplane struct {
	vpp       *conn.Conn
	fake      *vppfake.Fake // nil with a real VPP
	linux     *netlink.Backend
	trash     *vpp.Trash
	buffers   *vpp.Buffers
	janitor   *netlink.Janitor
	pool      *pool.Pool // nil: none
	scheduler *scheduler.Scheduler
	hostLinks *hostLinks
}

func newDataplane(a *agent) (*dataplane, error) {
	d := &dataplane{hostLinks: &hostLinks{monitor: netlink.NewHostMonitor(a.log)}}
	socket := a.opts.vppSocket
	if a.opts.dataplane == dataplaneFake {
		socket = filepath.Join(a.opts.runDir, "vpp-fake.sock")
		d.fake = vppfake.New(vppfake.Config{Log: a.log})
	}
	d.vpp = conn.New(conn.Config{
		Socket: socket, Require: vpp.Messages(), RequestTimeout: vppSilence, HealthTimeout: vppSilence,
	}, a.log)
	lane := d.vpp.Lane()
	d.linux = netlink.NewBackend(netlink.Config{Log: a.log})
	d.scheduler = scheduler.New(scheduler.Config{
		Backends: []scheduler.Backend{lane, d.linux}, Jobs: a.jobs, Decode: decodeValue,
		// What was retried in vain may need something that only a look at the whole dataplane finds.
		Report: func(_ *txn.Record, err *txn.Error) {
			if err := a.controller.DataplaneReconnected("gave up retrying: " + err.Error()); err != nil {
				a.log.Warn("repair of the dataplane not queued", "error", err)
			}
		},
	}, a.log.With("component", "scheduler"))
	index := vpp.NewIndex()
	d.trash, d.janitor = vpp.NewTrash(d.vpp, d.scheduler.Idle, a.log), netlink.NewJanitor(a.log)
	d.pool, d.buffers = newPool(a, d.vpp), vpp.NewBuffers(d.vpp, a.log)
	if err := vpp.Register(d.scheduler, vpp.Deps{
		Lane: lane, Index: index, LinuxDevice: d.linux.LinuxDevice, LinuxTap: d.linux.LinuxTap,
		LinuxTapMAC: d.linux.LinuxTapMAC, Isolate: netlink.Isolate, Trash: d.trash, Pool: d.vppPool(),
	}); err != nil {
		return nil, err
	}
	if err := netlink.Register(d.scheduler, netlink.Deps{
		Backend: d.linux, TapDevice: index.TapPlace, Janitor: d.janitor, Pool: d.vethPool(),
	}); err != nil {
		return nil, err
	}
	d.scheduler.RegisterREST(a.http)
	return d, errors.Join(a.registry.Register(vppCollector{d.vpp, d.buffers}), a.registry.Register(schedulerCollector{d.scheduler}))
}

// decodeValue reads a northbound value of a dry run.
func decodeValue(key string, data []byte) (proto.Message, error) {
	msg, err := nb.New(key)
	if err != nil {
		return nil, err
	}
	return msg, nb.UnmarshalJSON(data, msg)
}

// start connects to VPP; whenever it is a new VPP, or one whose state is in doubt, the controller repairs it.
func (d *dataplane) start(a *agent) error {
	if d.fake != nil {
		if err := d.fake.Listen(filepath.Join(a.opts.runDir, "vpp-fake.sock")); err != nil {
			return fmt.Errorf("fake: %w", err)
		}
	}
	d.vpp.OnChange(func(s conn.State) {
		if !s.Connected() {
			return
		}
		if err := a.controller.DataplaneReconnected(fmt.Sprintf("VPP %s, pid %d", s.Version, s.PID)); err != nil {
			a.log.Warn("resync after VPP came back not queued", "error", err)
		}
	})
	d.vpp.Start(a.jobs)
	if err := d.scheduler.Start(); err != nil {
		return err
	}
	a.jobs.Go("vpp trash", d.trash.Run)
	a.jobs.Go("vpp buffers", d.buffers.Run)
	a.jobs.Go("netlink janitor", d.janitor.Run)
	if d.pool != nil {
		a.jobs.Go("warm pool", d.pool.Run)
	}
	a.jobs.Go("host addresses", d.hostLinks.watch)
	return nil
}

// vppSilence is how long VPP may say nothing before it counts as frozen. Its main thread stands still while the kernel makes
// the rings of af_packet interfaces, for seconds on a loaded machine.
const vppSilence = 10 * time.Second

// vppPatience is how long the start-up waits for VPP. Without VPP the agent starts too, but says a lot about what fails.
const vppPatience = 2 * time.Second

// awaitVPP gives VPP a moment to be there before the first resync.
func (d *dataplane) awaitVPP(log *slog.Logger) {
	connected := make(chan struct{}, 1)
	d.vpp.OnChange(func(s conn.State) {
		if s.Connected() {
			select {
			case connected <- struct{}{}:
			default:
			}
		}
	})
	if d.alive() == nil {
		return
	}
	select {
	case <-connected:
	case <-time.After(vppPatience):
		log.Warn("VPP is not there yet; starting without", "error", d.alive())
	}
}

// close ends the dataplane's own parts; VPP and Linux keep what they have.
func (d *dataplane) close() error {
	d.scheduler.Close()
	d.vpp.Close()
	d.linux.Close()
	if d.fake != nil {
		return d.fake.Close()
	}
	return nil
}

// alive says why the dataplane cannot be programmed.
func (d *dataplane) alive() error {
	if s := d.vpp.State(); !s.Connected() {
		return fmt.Errorf("VPP is %s: %w", s.Status, s.Err)
	}
	return nil
}

// check says which of the values are not in the dataplane as they should be. It looks: what the scheduler remembers of them
// may have been changed by somebody else since.
func (d *dataplane) check(ctx context.Context, keys []string) error {
	var errs []error
	for _, key := range keys {
		status := d.scheduler.Status(scheduler.Filter{Key: key})
		switch {
		case len(status) == 0:
			errs = append(errs, fmt.Errorf("%s is not configured", key))
		case status[0].State != scheduler.Configured:
			errs = append(errs, fmt.Errorf("%s is %s %s", key, status[0].State, status[0].Error))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	repairs, err := d.scheduler.Plan(ctx, &txn.Txn{Kind: txn.DownstreamResync, Description: "CNI CHECK"})
	if err != nil {
		return fmt.Errorf("compare with the dataplane: %w", err)
	}
	for _, op := range repairs {
		if slices.Contains(keys, op.Key) || slices.Contains(keys, d.parent(op.Key)) {
			errs = append(errs, fmt.Errorf("%s is not in the dataplane as it should be (%s is due); a downstream resync repairs it",
				op.Key, op.Action))
		}
	}
	return errors.Join(errs...)
}

// parent is the key of the value that the item under key is a part of, if it is one.
func (d *dataplane) parent(key string) string {
	for _, v := range d.scheduler.Dump(scheduler.Filter{Key: key}) {
		return v.Parent
	}
	return ""
}

// hostLinks implements ipnet.HostLinks on the host monitor.
type hostLinks struct {
	monitor *netlink.HostMonitor

	mu       sync.Mutex
	callback func() // guarded by mu
}

// HostIPs implements ipnet.HostLinks.
func (h *hostLinks) HostIPs() ([]net.IP, error) {
	addrs, err := h.monitor.Addresses(context.Background()) // bounded by the monitor's own timeout
	if err != nil {
		return nil, err
	}
	ips := make([]net.IP, len(addrs))
	for i, a := range addrs {
		ips[i] = a.Prefix.Addr().AsSlice()
	}
	return ips, nil
}

// WatchHostIPs implements ipnet.HostLinks.
func (h *hostLinks) WatchHostIPs(callback func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.callback = callback
}

// watch is the job that calls back.
func (h *hostLinks) watch(ctx context.Context) error {
	first := true
	return h.monitor.Watch(ctx, func([]netlink.HostAddress) {
		h.mu.Lock()
		callback := h.callback
		h.mu.Unlock()
		if !first && callback != nil {
			callback()
		}
		first = false
	})
}
