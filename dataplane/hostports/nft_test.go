package hostports

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/dataplane/txn"
)

// TestNFT tests that the kernel accepts the tables, that a deleted table is written again, and that a new agent writes nothing. Leftovers of
// earlier agents are removed, and nothing else.
func TestNFT(t *testing.T) {
	k := newKernel(t, "nft")
	k.must("ip link add vpp1 type veth peer vpp1p && ip link set vpp1p up && ip addr add 172.30.1.2/24 dev vpp1 && ip link set vpp1 up")
	writes := 0
	nft := func(ctx context.Context, script string, args ...string) (string, error) {
		if args[0] == "-f" {
			writes++
		}
		cmd := k.Command(ctx, "nft", args...)
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return string(out), nil
	}
	four := nodePorts(30080)
	four.Ports = append(four.Ports, &linux_nodeports.NodePorts_Port{Protocol: linux_nodeports.NodePorts_UDP, Port: 30080, KeepClient: true},
		&linux_nodeports.NodePorts_Port{Protocol: linux_nodeports.NodePorts_SCTP, Port: 30080})
	six := &linux_nodeports.NodePorts{
		Family: linux_nodeports.Family_IPV6, Ports: []*linux_nodeports.NodePorts_Port{{Port: 30081, KeepClient: true}},
		Addresses: []string{"fd00:99::1"}, To: "fd00:172::1", Device: "vpp1",
	}
	a := newAgent(t, nft)
	forwarded := []proto.Message{
		&linux_nodeports.Forwarded{Device: "vpp1", Own: "172.30.1.2", Translated: "172.30.1.3", Masqueraded: "172.30.1.4"},
		&linux_nodeports.Forwarded{Family: linux_nodeports.Family_IPV6, Device: "vpp1", Own: "fd00:172::2"}, // the subnet has no free addresses
	}
	apply := func(what string, want int) {
		t.Helper()
		writes = 0
		for range 2 {
			a.must(a.commit(txn.FullResync, append(forwarded, four, six)...))
		}
		if writes != want {
			t.Errorf("%s: %d tables were written, want %d", what, writes, want)
		}
	}
	apply("first", 4)
	a = newAgent(t, nft)
	apply("a new agent", 0)
	k.must("nft delete table ip contiv-nodeports; nft delete table ip6 contiv-nodeports")
	apply("deleted", 2)
	k.must("nft delete table ip contiv-forwarded; nft flush chain ip6 contiv-forwarded masqueraded")
	apply("deleted, and flushed", 2)
	k.must("nft delete element ip contiv-nodeports ports '{ tcp . 30080 }'")
	apply("an element less", 1)

	k.must("for f in ip ip6; do nft add table $f contiv-places; nft add table $f contiv-aliases; done; nft add table ip others; " +
		"ip rule add fwmark 0x10000000/0x10000000 lookup 30100 priority 1000; ip route add default via 172.30.1.1 dev vpp1 table 30100; " +
		"ip rule add fwmark 0x7 lookup 30101 priority 999; ip route add default via 172.30.1.1 dev vpp1 table 30101")
	k.clean(nft)
	k.clean(nft)
	left := k.must("nft list tables; ip rule; ip -6 rule; ip route show table all")
	for _, gone := range []string{"contiv-places", "contiv-aliases", "30100"} {
		if strings.Contains(left, gone) {
			t.Errorf("%s is left:\n%s", gone, left)
		}
	}
	for _, stays := range []string{"table ip others", "table ip contiv-nodeports", "table ip6 contiv-nodeports", "lookup 30101", "table 30101"} {
		if !strings.Contains(left, stays) {
			t.Errorf("%s is gone:\n%s", stays, left)
		}
	}
	writes = 0
	a.must(a.commit(txn.FullResync))
	if out := k.must("nft list tables"); strings.Contains(out, portsTable) || strings.Contains(out, forwardedTable) {
		t.Errorf("left: %s", out)
	}
}
