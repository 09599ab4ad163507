package main

import (
	"context"

	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/internal/connectivity"
	"contiv.dev/vswitch/plugins/podmanager"
)

// netnsDir is the directory in which container runtimes keep network namespaces; VPP's container mounts it, too.
const netnsDir = "/run/netns"

// newTestPods makes the pods of contiv-netctl connectivity test.
func (a *agent) newTestPods(checks podmanager.Checks) *connectivity.Service {
	return connectivity.New(connectivity.Deps{
		Log: a.log.With("component", "testpods"), HTTP: a.http, Jobs: a.jobs, Dir: netnsDir,
		CNI: func(ctx context.Context, req *cniapi.Request) (*cniapi.Result, error) {
			return a.pods.Handle(ctx, checks, req)
		},
	})
}
