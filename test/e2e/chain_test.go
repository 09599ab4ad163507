package e2e

import (
	"encoding/json"
	"net"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
)

// chained puts the reference plugin for host ports after ours, as in most clusters.
func chained(o *testbed.NodeOptions) {
	o.CNIInNode = true
	o.ConflistOf = func(agentSocket string) []byte {
		text, err := json.Marshal(map[string]any{
			"cniVersion": "1.1.0", "name": "contiv",
			"plugins": []any{
				map[string]any{"type": "contiv-cni", "agentSocket": agentSocket},
				map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}, "snat": true,
					"backend": "iptables"},
			},
		})
		if err != nil {
			panic(err) // the list is a literal
		}
		return text
	}
}

// TestHostPort checks that a port of the node is forwarded to the pod.
func TestHostPort(t *testing.T) {
	t.Parallel()
	each(t, []mode{tap, veth, linux}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		r := newRig(t, m, chained)
		if _, err := r.Run(r.ctx, "iptables", "-t", "nat", "-N", "E2E"); err != nil {
			t.Skipf("iptables cannot be used here: %v", err)
		}
		p := r.pod("web")
		p.Capabilities = map[string]any{"portMappings": []map[string]any{
			{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
		}}
		_, err := r.CNI.Add(r.ctx, p)
		r.must(err)
		var l net.Listener
		r.must(p.Do(func() (err error) {
			l, err = net.Listen("tcp", net.JoinHostPort(p.IPs[0].String(), "80"))
			return err
		}))
		defer l.Close()
		echoed := make(chan error, 1)
		go func() { echoed <- echo(l) }()
		var c net.Conn
		r.within(10*time.Second, "connect to the node's port", func() error {
			return r.Do(func() (err error) {
				c, err = net.DialTimeout("tcp", r.hostIP()+":8080", time.Second)
				return err
			})
		})
		defer c.Close()
		r.must(exchange(c, 1<<18))
		r.must(<-echoed)
		r.must(r.CNI.Check(r.ctx, p))
		r.must(r.CNI.Del(r.ctx, p))
		r.onlyPods(nil)
		err = r.Do(func() error {
			c, err := net.DialTimeout("tcp", r.hostIP()+":8080", time.Second)
			if err == nil {
				c.Close()
			}
			return err
		})
		if err == nil {
			t.Error("the node's port leads somewhere after the pod is gone")
		}
	})
}
