package e2e

import (
	"fmt"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestHostDamaged checks that routes, neighbours and rules of the host that another program removes are restored, at once on request.
func TestHostDamaged(t *testing.T) {
	t.Parallel()
	each(t, []mode{linux, iptables}, func(t *testing.T, m mode) {
		matrix.Only(t, tap.name, linux.name, fake.name)
		r := newRig(t, m)
		pods := r.add("a", "b")
		r.must(r.ring(5*time.Second, pods))
		flush := "nft flush ruleset"
		if m == iptables {
			flush = "iptables -F && iptables -t nat -F && iptables -t mangle -F && iptables -t raw -F"
		}
		for _, damage := range []string{
			"ip route del " + pods[0].IPs[0].String(),
			"ip neigh flush nud permanent",
			flush,
		} {
			if _, err := r.Run(r.ctx, "sh", "-c", damage); err != nil {
				t.Errorf("%s: %v", damage, err)
				continue
			}
			_, err := r.Post(r.ctx, "/scheduler/downstream-resync")
			r.must(err)
			if err := r.ring(3*time.Second, pods); err != nil {
				t.Errorf("%s: not repaired: %v", damage, err)
			}
		}
		// The rules are restored, too: an interface that only looks like a pod's reaches nothing.
		if _, err := r.Run(r.ctx, "sh", "-c", "ip link add cali-foreign type veth peer name foreign && "+
			"ip link set cali-foreign up && ip netns add "+r.Name+"-x && ip link set foreign netns "+r.Name+"-x && "+
			"ip netns exec "+r.Name+"-x sh -c 'ip link set foreign up && ip addr add 10.77.0.2/24 dev foreign && "+
			"ip route add default via 10.77.0.1' && ip addr add 10.77.0.1/24 dev cali-foreign"); err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = r.Run(r.ctx, "ip", "netns", "del", r.Name+"-x") }()
		out, err := r.Run(r.ctx, "sh", "-c", fmt.Sprintf("ip netns exec %s-x ping -c 2 -W 1 %s", r.Name, pods[0].IPs[0]))
		if err == nil {
			t.Errorf("an unknown device reaches a pod: %s", out)
		}
	})
}
