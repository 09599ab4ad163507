package plugin_test

import (
	"net"
	"testing"
)

// TestReceiveAfterUp: a pod fills the ring of its interface before the interface is up, like pods that send while VPP restarts. VPP
// receives from the pod afterwards.
func TestReceiveAfterUp(t *testing.T) {
	eachWorkers(t, receiveAfterUp)
}

func receiveAfterUp(r *rig) {
	a, b := r.pod("a", ""), r.pod("b", "")
	for _, mode := range []string{"interrupt", "adaptive"} {
		for _, p := range []*port{a, b} { // if VPP polls one of them, it reads both
			r.cli("set interface rx-mode %s %s", p.device, mode)
		}
		r.reach(a, b.v4)
		r.cli("set interface state %s down", a.device)
		sent := 0
		r.do(nil, a.Do(func() error {
			conn, err := net.Dial("udp", net.JoinHostPort(b.v4.String(), "9"))
			if err != nil {
				return err
			}
			defer conn.Close()
			for range 10_000 { // the ring has at most 1024 places
				if _, err := conn.Write(make([]byte, 100)); err == nil {
					sent++
				}
			}
			return nil
		}))
		r.cli("set interface state %s up", a.device)
		r.reach(a, b.v4)
		r.Logf("%s: %d packets were sent while the interface was down", mode, sent)
	}
}
