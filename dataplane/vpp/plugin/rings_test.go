package plugin_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestFreeDelivered: a pod sends one burst to each pod of its node, and then nothing. VPP gets all buffers of these packets back, although no
// further packet goes to these pods. Otherwise their rings keep them, and all pods of the node lack these buffers.
func TestFreeDelivered(t *testing.T) {
	for _, workers := range shortCounts {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			matrix.Only(t, "workers=0", "workers=2")
			freeDelivered(newRig(t, vpptest.Options{Workers: workers, Vhostshim: true, Buffers: 16384}))
		})
	}
}

func freeDelivered(r *rig) {
	const pods, burst = 20, 2000
	from := r.pod("from", "")
	var to []*port
	for i := range pods {
		to = append(to, r.pod(fmt.Sprintf("to%d", i), "tx-ring-size 1024"))
	}
	for _, p := range to {
		r.reach(from, p.v4)
	}
	before := r.transmitted(to)
	for _, p := range to {
		r.do(nil, from.Do(func() error {
			conn, err := net.Dial("udp", net.JoinHostPort(p.v4.String(), "9"))
			if err != nil {
				return err
			}
			defer conn.Close()
			for range burst {
				_, _ = conn.Write(make([]byte, 100)) // the receiver's kernel rejects some of them
			}
			return nil
		}))
	}
	poll.Await(r.T, "the bursts arrive", 30*time.Second, func() bool { return r.transmitted(to)-before > pods*burst/10 })
	poll.Succeeds(r.T, "VPP frees the buffers of delivered packets", 30*time.Second, func() error {
		if kept := r.kept(); kept > 0 {
			return fmt.Errorf("the rings keep %d packets", kept)
		}
		return nil
	})
	for _, p := range to {
		r.reach(p, from.v4)
	}
}

// transmitted returns the number of packets that VPP has sent to these ports.
func (r *rig) transmitted(to []*port) (n int) {
	r.Helper()
	for _, p := range to {
		for line := range strings.Lines(r.cli("show interface %s", p.device)) {
			if _, count, ok := strings.Cut(line, "tx packets"); ok {
				var packets int
				_, err := fmt.Sscan(count, &packets)
				r.do(nil, err)
				n += packets
			}
		}
	}
	return n
}

// kept returns the number of packets in transmit rings, delivered or not.
func (r *rig) kept() (n int) {
	r.Helper()
	transmits := false
	for line := range strings.Lines(r.cli("show tap")) {
		if strings.Contains(line, "Virtqueue (") {
			transmits = strings.Contains(line, "(TX)")
		}
		if _, count, ok := strings.Cut(line, "desc_in_use "); ok && transmits {
			var packets int
			_, err := fmt.Sscan(count, &packets)
			r.do(nil, err)
			n += packets
		}
	}
	return n
}
