package intdataplane

import (
	"context"
	"time"

	"contiv.dev/vswitch/dataplane/denied"
	"contiv.dev/vswitch/dataplane/linux/nflog"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// ReportsSupported returns an error if the kernel cannot report packets that policies drop: see rules.Config.ReportDenied.
func ReportsSupported() error {
	w, err := nflog.Open(nil, table.ReportGroup, table.ReportBytes)
	if err != nil {
		return err
	}
	return w.Close()
}

// WatchDenied calls each for the packets that policies of workloads drop, as far as the kernel reports them, until ctx ends.
func WatchDenied(ctx context.Context, each func(denied.Flow)) error {
	w, err := nflog.Open(nil, table.ReportGroup, table.ReportBytes)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Watch(ctx, func(p nflog.Packet) {
		f, ok := denied.Parse(p.Data)
		if !ok || p.Prefix != rules.ReportIngress && p.Prefix != rules.ReportEgress {
			return
		}
		f.Time, f.Ingress = time.Now(), p.Prefix == rules.ReportIngress
		each(f)
	})
}
