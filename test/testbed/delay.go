package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/lifecycle"
)

const (
	vnetHeader  = 10        // struct virtio_net_hdr, in front of every frame: offloads pass through as they are
	maxFrame    = 66 * 1024 // a segment before it is cut
	delayedMost = 4096      // frames in flight; more are lost, as on any line
)

// Delay delays the packets that the i-th node (from 0) sends and receives on the network that connects nodes by d. A second call
// replaces the first; 0 ends the delay. Such a line forwards about 10,000 packets/s; the kernel's own implementation (netem) is not
// available everywhere.
func (c *Cluster) Delay(ctx context.Context, i int, d time.Duration) error {
	port, near, far := portName("uplink", i), fmt.Sprintf("slow%d", i+1), fmt.Sprintf("slowbr%d", i+1)
	if line := c.slow[i]; line != nil {
		delete(c.slow, i)
		_, err := c.Underlay.Run(ctx, "ip", "link", "del", near)
		if err := errors.Join(err, line.stop()); err != nil {
			return err
		}
	}
	if d <= 0 {
		_, err := c.Underlay.Run(ctx, "ip", "link", "set", port, "master", "uplink")
		return err
	}
	if _, err := c.Underlay.Run(ctx, "sh", "-ec", fmt.Sprintf(
		"ip link add %[2]s mtu %[4]d type veth peer name %[3]s mtu %[4]d\n"+
			"ip link set %[1]s nomaster promisc on\nip link set %[2]s up promisc on\nip link set %[3]s master uplink up",
		port, near, far, UplinkMTU)); err != nil {
		return err
	}
	line := &slowLine{jobs: lifecycle.NewGroup(context.WithoutCancel(ctx), slog.New(slog.DiscardHandler))}
	c.slow[i] = line
	if err := c.Underlay.Do(func() error {
		for _, name := range []string{port, near} {
			s, err := rawSocket(name)
			if err != nil {
				return err
			}
			line.socks = append(line.socks, s)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("delay of node %d: %w", i+1, err)
	}
	line.start(d)
	return nil
}

// slowLine forwards frames between a node's port and the bridge.
type slowLine struct {
	jobs  *lifecycle.Group
	socks []int // on the port and on the link to the bridge
}

func (l *slowLine) start(d time.Duration) {
	for k, sock := range l.socks {
		frames := make(chan lateFrame, delayedMost)
		l.jobs.Go("take frames", func(ctx context.Context) error { return take(ctx, sock, d, frames) })
		l.jobs.Go("give frames", func(ctx context.Context) error { return give(ctx, l.socks[1-k], frames) })
	}
}

func (l *slowLine) stop() error {
	err := l.jobs.Stop(5 * time.Second)
	for _, s := range l.socks {
		err = errors.Join(err, unix.Close(s))
	}
	return err
}

// lateFrame is a frame in flight.
type lateFrame struct {
	due  time.Time
	data []byte
}

// rawSocket returns a socket that reads and writes whole frames of a device of the current namespace.
func rawSocket(device string) (int, error) {
	ifc, err := net.InterfaceByName(device)
	if err != nil {
		return 0, err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network byte order
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return 0, err
	}
	err = errors.Join(
		unix.SetsockoptInt(s, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(s, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
		unix.Bind(s, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifc.Index}),
	)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("socket on %s: %w", device, err), unix.Close(s))
	}
	return s, nil
}

// take reads frames until ctx ends.
func take(ctx context.Context, sock int, d time.Duration, frames chan<- lateFrame) error {
	buf := make([]byte, maxFrame)
	for ctx.Err() == nil {
		n, err := unix.Read(sock, buf)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN):
			continue
		case err != nil:
			return err
		case n <= vnetHeader:
			continue
		}
		select {
		case frames <- lateFrame{time.Now().Add(d), append([]byte(nil), buf[:n]...)}:
		default: // lost
		}
	}
	return ctx.Err()
}

// give writes each frame when its time is due, until ctx ends.
func give(ctx context.Context, sock int, frames <-chan lateFrame) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case f := <-frames:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(f.due)):
			}
			_, _ = unix.Write(sock, f.data) // a device that is down drops frames
		}
	}
}
