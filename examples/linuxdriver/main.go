// Command linuxdriver shows how another project uses the Linux driver: it runs the driver in a network namespace, where interfaces whose names begin
// with "pod" may communicate with each other, except for addresses on a block list, which a manager of this program keeps in an IP set of the driver.
// It compiles and runs only while the driver's documented interfaces stay as they are.
//
//	linuxdriver NAMESPACE ADDRESS...    blocks the addresses until it is interrupted (root)
package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"contiv.dev/vswitch/dataplane/linux"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: linuxdriver NAMESPACE ADDRESS...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "linuxdriver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, namespace string, blocked []string) error {
	d, err := start(namespace)
	if err != nil {
		return err
	}
	defer d.stop()
	for _, text := range blocked {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		if err := d.send(&block{addr}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// dataplane is a running driver.
type dataplane struct {
	*intdataplane.InternalDataplane
	ns     *intdataplane.Namespace
	health *intdataplane.HealthAggregator
}

// start starts a driver that allows all connections between workloads.
func start(namespace string) (*dataplane, error) {
	ns, err := intdataplane.OpenNamespace("/run/netns/" + namespace)
	if err != nil {
		return nil, err
	}
	d := &dataplane{ns: ns, health: intdataplane.NewHealthAggregator()}
	config := intdataplane.Config{HealthAggregator: d.health, RulesConfig: rules.Config{
		Hostname: "node", WorkloadIfacePrefixes: []string{"pod"},
	}}
	if d.InternalDataplane, err = intdataplane.New(config, intdataplane.Options{NS: ns}); err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	d.RegisterManager(&blockList{tables: d.Tables(table.IPv4)})
	d.Start()
	return d, d.send(&proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: "open"}, Profile: &proto.Profile{
		InboundRules: []*proto.Rule{{Action: "allow"}}, OutboundRules: []*proto.Rule{{Action: "allow"}},
	}}, &proto.InSync{})
}

// pod announces the endpoint of a workload.
func (d *dataplane) pod(iface string, addr netip.Addr) error {
	return d.send(&proto.WorkloadEndpointUpdate{
		Id: &proto.WorkloadEndpointID{OrchestratorId: "k8s", WorkloadId: iface, EndpointId: "eth0"},
		Endpoint: &proto.WorkloadEndpoint{State: "active", Name: iface, ProfileIds: []string{"open"},
			Ipv4Nets: []string{addr.String() + "/32"}},
	})
}

// send returns when the messages have been applied.
func (d *dataplane) send(msgs ...any) error {
	for _, msg := range msgs {
		if err := d.SendMessage(msg); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return d.Flush(ctx)
}

func (d *dataplane) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := errors.Join(d.Stop(ctx), d.ns.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "linuxdriver:", err)
	}
}
