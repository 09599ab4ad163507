package tunnel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/ipaddr"
)

const (
	ipipPeriod = 10 * time.Second
	ipipRetry  = time.Second
)

// IPIP maintains the IPIP device. Its methods are for one goroutine.
type IPIP struct {
	cfg    IPIPConfig
	open   func() (kernel, error)
	kernel kernel                                     // nil: not connected
	pause  func(context.Context, time.Duration) error // until ctx ends
}

// NewIPIP returns an IPIP. It does no I/O before Run or Apply.
func NewIPIP(cfg IPIPConfig) *IPIP {
	if cfg.Device == "" {
		cfg.Device = defaultIPIPDevice
	}
	if cfg.MTU == 0 {
		cfg.MTU = defaultIPIPMTU
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &IPIP{cfg: cfg, open: func() (kernel, error) { return openSocket(cfg.NS, cfg.Timeout) }, pause: pause}
}

// Run maintains the device until ctx ends; it runs as a job. It checks the device every 10 s, and 1 s after an error. An error is logged if
// it differs from the last one.
func (t *IPIP) Run(ctx context.Context) error {
	defer t.disconnect()
	last := ""
	for {
		wait := ipipPeriod
		err := t.Apply(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err == nil:
			last = ""
		case err.Error() != last:
			last = err.Error()
			t.cfg.Log.Warn("the IPIP device is not configured as required; retrying", "device", t.cfg.Device, "error", err)
		}
		if err != nil {
			wait = ipipRetry
		}
		if err := t.pause(ctx, wait); err != nil {
			return err
		}
	}
}

// Apply configures the device as desired, once. It returns errNoDriver if the kernel does not support IPIP.
func (t *IPIP) Apply(ctx context.Context) error {
	if t.kernel == nil {
		k, err := t.open()
		if err != nil {
			return err
		}
		t.kernel = k
	}
	err := t.apply(ctx)
	if errors.Is(err, netlink.ErrUnknown) {
		t.disconnect()
	}
	return err
}

func (t *IPIP) disconnect() {
	if t.kernel != nil {
		t.kernel.Close()
		t.kernel = nil
	}
}

func (t *IPIP) apply(ctx context.Context) error {
	l, err := t.device(ctx)
	if err != nil {
		return err
	}
	if l.Kind != "ipip" && l.Kind != "" { // the kernel's own tunl0 also has a kind, but old kernels do not report it
		return fmt.Errorf("link %s is not an IPIP tunnel but of kind %s; remove it", l.Name, l.Kind)
	}
	if err := setLink(ctx, t.kernel, l, t.cfg.MTU, nil); err != nil {
		return err
	}
	var want []netip.Prefix
	if t.cfg.Address.IsValid() {
		want = []netip.Prefix{ipaddr.HostPrefix(t.cfg.Address)}
	}
	return setAddresses(ctx, t.kernel, l, want)
}

// device returns the device, and creates it if it does not exist. The kernel creates its tunl0 automatically when the driver is loaded; a
// request for a device of that kind loads it.
func (t *IPIP) device(ctx context.Context) (netlink.Link, error) {
	l, found, err := t.kernel.Link(t.cfg.Device)
	if err != nil || found {
		return l, err
	}
	err = one(ctx, t.kernel, func(b *netlink.Batch) {
		b.NewLink()
		b.Text(unix.IFLA_IFNAME, t.cfg.Device)
		b.Nest(unix.IFLA_LINKINFO, func() { b.Text(unix.IFLA_INFO_KIND, "ipip") })
	})
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return l, fmt.Errorf("make IPIP device %s: %w (module ipip); use another encapsulation", t.cfg.Device, errNoDriver)
	case err != nil && !errors.Is(err, unix.EEXIST): // tunl0 was created with the driver
		return l, fmt.Errorf("make IPIP device %s: %w", t.cfg.Device, err)
	}
	l, found, err = t.kernel.Link(t.cfg.Device)
	if err == nil && !found {
		err = errVanished(t.cfg.Device)
	}
	return l, err
}

func errVanished(device string) error {
	return fmt.Errorf("tunnel device %s disappeared immediately after its creation; another program may remove it", device)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
