package intdataplane

import (
	"context"
	"errors"
	"fmt"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Uninstall stops the driver and removes all of its objects from the kernel, including those that an earlier process has left: routes and
// neighbours, the VXLAN device, then rules and sets. Kernel parameters remain, and so does tunl0, which belongs to the kernel. The driver
// cannot be used afterwards.
func (d *InternalDataplane) Uninstall(ctx context.Context) error {
	if d.loop == nil {
		return fmt.Errorf("uninstall: %w", d.front.Failed())
	}
	errs := []error{d.halt(ctx)}
	// Routes are removed first: a workload that is no longer filtered must not be reachable.
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		routes := d.parts.routes(f, nil)
		errs = append(errs, routes.Apply(ctx), routes.Close())
	}
	device := d.parts.vxlan(table.IPv4)
	device.SetLocal()
	device.SetVTEPs(nil)
	errs = append(errs, device.Apply(ctx), device.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("uninstall: the rules are kept, because other objects could not be removed: %w", err)
	}
	gone := d.services.uninstall(ctx)
	if d.parts.passage != nil {
		d.parts.passage.SetLinks()
		for name, reason := range d.parts.passage.Apply(ctx).Broken {
			gone = errors.Join(gone, fmt.Errorf("%s: %w", name, reason))
		}
	}
	d.backend.clear()
	result := d.backend.Apply(ctx)
	err := errors.Join(gone, result.Err, d.sweepOthers(ctx))
	for name, reason := range result.Broken {
		err = errors.Join(err, fmt.Errorf("%s: %w", name, reason))
	}
	d.closeBackend.Do(func() { err = errors.Join(err, d.closeBackends()) })
	if err != nil {
		return fmt.Errorf("uninstall: rules: %w", err)
	}
	return nil
}
