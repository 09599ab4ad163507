package plugin_test

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

// A pod reaches a service of another pod, and itself through the same service.
func TestService(t *testing.T) {
	eachWorkers(t, func(r *rig) {
		a, b := r.pod("a", ""), r.pod("b", "")
		r.network("10.1.0.0/16", contiv.CONTIV_CLASS_API_POD)
		r.network("fd00:1::/32", contiv.CONTIV_CLASS_API_POD)
		r.masquerade("10.1.0.1", "fd00:1::1")
		r.serve(b, "tcp", 8080)
		r.service(1, "10.96.0.1:80", 6, netip.AddrPortFrom(b.v4, 8080).String())
		r.service(2, "[fd00:96::1]:80", 6, netip.AddrPortFrom(b.v6, 8080).String())
		for _, client := range []*port{a, b} {
			for _, to := range []string{"10.96.0.1:80", "[fd00:96::1]:80"} {
				if got := r.query(client, to); got != b.Name {
					r.Errorf("%s asks %s: %q answers", client.Name, to, got)
				}
			}
		}
		r.Log(r.cli("show contiv connections"), r.cli("show contiv stats"))
	})
}

// serve answers each connection with the name of the pod.
func (r *rig) serve(p *port, network string, number int) {
	r.Helper()
	var l net.Listener
	err := p.Do(func() (err error) {
		l, err = net.ListenTCP(network, &net.TCPAddr{Port: number})
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, p.Name)
			c.Close()
		}
	}()
}

// query connects and returns the data that it receives.
func (r *rig) query(p *port, to string) string {
	r.Helper()
	var got []byte
	err := p.Do(func() error {
		c, err := net.DialTimeout("tcp", to, 2*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		got, err = io.ReadAll(c)
		return err
	})
	if err != nil {
		r.Errorf("%s asks %s: %v", p.Name, to, err)
	}
	return string(got)
}
