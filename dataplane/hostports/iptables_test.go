package hostports

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/dataplane/txn"
)

// TestIPTables tests a host without nft: the kernel accepts the rules through iptables; rules that another program deletes, or puts before
// ours, are repaired; a new agent writes nothing; an agent with nft removes our rules, and no others. The dump works although there is no nft.
func TestIPTables(t *testing.T) {
	k := newKernel(t, "iptables")
	nft := func(context.Context, string, ...string) (string, error) {
		return "", fmt.Errorf("nft: %w", exec.ErrNotFound)
	}
	writes := 0
	iptables := func(ctx context.Context, f linux_nodeports.Family, what, input string, args ...string) (out string, err error) {
		if what == "-restore" {
			writes++
		}
		if doErr := k.Do(func() error {
			out, err = IPTablesCommand(ctx, f, what, input, args...)
			return nil
		}); doErr != nil {
			return "", doErr
		}
		return out, err
	}
	forwarded := []proto.Message{
		&linux_nodeports.Forwarded{Device: "vpp1", Own: "172.30.1.2", Translated: "172.30.1.3", Self: "172.30.1.5", Others: []string{"10.0.0.1", "10.0.0.2"}},
		&linux_nodeports.Forwarded{Family: linux_nodeports.Family_IPV6, Device: "vpp1", Own: "fd00:172::2", Translated: "fd00:172::3", Self: "fd00:172::5"},
	}
	a := newAgentWith(t, nft, iptables)
	apply := func(what string, want int) {
		t.Helper()
		writes = 0
		for range 2 {
			a.must(a.commit(txn.FullResync, forwarded...))
		}
		if writes != want {
			t.Errorf("%s: written %d times, want %d", what, writes, want)
		}
	}
	apply("first", 2)
	a = newAgentWith(t, nft, iptables)
	apply("a new agent", 0)
	k.must("iptables -t nat -F contiv-forwarded; ip6tables -t mangle -D FORWARD -j contiv-forwarded")
	apply("flushed, and a jump deleted", 2)
	k.must("iptables -t nat -I POSTROUTING 1 -s 10.0.0.0/8 -j MASQUERADE")
	apply("another rule before it", 1)
	if out := k.must("iptables -t nat -S POSTROUTING"); strings.Count(out, "contiv-forwarded") != 1 ||
		strings.Index(out, "contiv-forwarded") > strings.Index(out, "MASQUERADE") {
		t.Errorf("the rules are\n%s", out)
	}
	forwarded[0].(*linux_nodeports.Forwarded).Others = nil
	apply("a change", 1)

	k.clean(Command)
	left := k.must("iptables -t nat -S; iptables -t mangle -S; ip6tables -t nat -S; ip6tables -t mangle -S")
	if strings.Contains(left, forwardedTable) || !strings.Contains(left, "MASQUERADE") {
		t.Errorf("left:\n%s", left)
	}
	apply("removed", 2)
	a.must(a.commit(txn.FullResync))
	if left := k.must("iptables -t nat -S; ip6tables -t mangle -S"); strings.Contains(left, forwardedTable) {
		t.Errorf("left:\n%s", left)
	}
}

func TestValidateSelf(t *testing.T) {
	v := &linux_nodeports.Forwarded{Device: "vpp1", Own: "172.30.1.2", Translated: "172.30.1.3", Self: "172.30.1.5", Others: []string{"10.0.0.1"}}
	if err := validateForwarded(v); err != nil {
		t.Error(err)
	}
	v.Self, v.Others = "172.30.1.5 -j ACCEPT", []string{"fd00::1"}
	if err := validateForwarded(v); err == nil || !strings.Contains(err.Error(), "self:") || !strings.Contains(err.Error(), "others:") {
		t.Errorf("%v", err)
	}
}
