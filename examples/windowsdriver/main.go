// Command windowsdriver shows how another project uses the Windows driver: it sends the messages of a datastore-facing part, which are a policy that
// allows connections from some addresses and a pod to which the policy applies. A manager of this program keeps the addresses in an IP set of the
// driver. HNS is the one in memory, so that the program runs everywhere; on Windows hns.Open returns the machine's HNS. It compiles and runs only
// while the driver's documented interfaces stay as they are.
package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

func main() {
	host, pod, err := run(netip.MustParseAddr("10.65.0.3"))
	if err == nil {
		err = show(host, pod)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "windowsdriver:", err)
		os.Exit(1)
	}
}

const network = "contiv"

// run programs the policy and returns the host, and HNS's ID of the pod's endpoint.
func run(friend netip.Addr) (host *hnsmem.Host, pod string, err error) {
	host = hnsmem.New()
	subnet := hcn.Subnet{IPAddressPrefix: "10.65.0.0/16", Routes: []hcn.Route{{NextHop: "10.65.255.254", DestinationPrefix: "0.0.0.0/0"}}}
	if _, err := host.V2().CreateNetwork(hcn.Network{Name: network, Type: hcn.L2Bridge,
		IPAMs: []hcn.IPAM{{Subnets: []hcn.Subnet{subnet}}}}); err != nil {
		return nil, "", err
	}
	if pod, err = host.Pod(network, "web", netip.MustParseAddr("10.65.0.2")); err != nil { // the CNI plugin's work
		return nil, "", err
	}
	health := windataplane.NewHealthAggregator()
	d := windataplane.NewWinDataplaneDriver(host.V1(), windataplane.Config{Hostname: "node", HealthAggregator: health})
	d.RegisterManager(&friends{sets: d.IPSets()})
	d.Start()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	defer d.Stop(ctx)
	for _, msg := range messages(friend) {
		if err := d.SendMessage(msg); err != nil {
			return nil, "", err
		}
	}
	if err := d.Flush(ctx); err != nil {
		return nil, "", err
	}
	if summary := health.Summary(); !summary.Ready {
		return nil, "", fmt.Errorf("the driver is not ready: %s", summary.Detail)
	}
	return host, pod, nil
}

// befriend is a message to friends: allow connections from the address.
type befriend struct{ addr netip.Addr }

// friends is a manager. It creates the set when it receives the first message.
type friends struct {
	sets  *windataplane.IPSets
	begun bool
}

var _ windataplane.Manager = (*friends)(nil)

// OnUpdate implements windataplane.Manager.
func (f *friends) OnUpdate(msg any) {
	if !f.begun {
		f.begun = true
		f.sets.AddOrReplaceIPSet("friends", proto.IPSetUpdate_IP, nil)
	}
	if m, ok := msg.(*befriend); ok {
		f.sets.AddMembers("friends", []string{m.addr.String()})
	}
}

// CompleteDeferredWork implements windataplane.Manager.
func (f *friends) CompleteDeferredWork() error { return nil }

// messages returns the messages of the datastore-facing part, each resource before those that refer to it, and the messages for this program's own
// manager.
func messages(friend netip.Addr) []any {
	return []any{
		&befriend{friend},
		&proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "default", Name: "friends-only"}, Policy: &proto.Policy{
			InboundRules: []*proto.Rule{{Action: "allow", SrcIpSetIds: []string{"friends"}}},
		}},
		&proto.WorkloadEndpointUpdate{
			Id: &proto.WorkloadEndpointID{OrchestratorId: "k8s", WorkloadId: "web", EndpointId: "eth0"},
			Endpoint: &proto.WorkloadEndpoint{State: "active", Name: "web", Ipv4Nets: []string{"10.65.0.2/32"},
				Tiers: []*proto.TierInfo{{Name: "default", IngressPolicies: []string{"friends-only"}}}},
		},
		&proto.InSync{},
	}
}

// show prints the verdict for two packets.
func show(host *hnsmem.Host, pod string) error {
	for _, from := range []string{"10.65.0.3", "10.65.0.4"} {
		ok, err := allowed(host, pod, netip.MustParseAddr(from))
		if err != nil {
			return err
		}
		fmt.Printf("TCP from %s to port 80: allowed %t\n", from, ok)
	}
	return nil
}

func allowed(host *hnsmem.Host, pod string, from netip.Addr) (bool, error) {
	return host.Allowed(pod, hns.In, hnsmem.Packet{Protocol: 6, Local: netip.MustParseAddr("10.65.0.2"), LocalPort: 80, Remote: from,
		RemotePort: 40000})
}
