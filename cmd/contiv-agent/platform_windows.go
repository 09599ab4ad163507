package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/wiring"
)

const (
	defaultRunDir  = `C:\ProgramData\contiv\run`
	defaultDataDir = `C:\ProgramData\contiv\data`
)

// platformOptions is empty: the Windows dataplane has no flags of its own.
type platformOptions struct{}

func (o *platformOptions) registerPlatform(*pflag.FlagSet) {}

// countNATByPod returns 0: Windows does not count connections by pod.
func (o *platformOptions) countNATByPod() time.Duration { return 0 }

// findDataplane resolves --dataplane=auto.
func (o *options) findDataplane() string { return dataplaneWindows }

func (a *agent) newHostMonitor() hostMonitor { return newPolledHost() }

func (a *agent) lockPath() (string, error) { return nodeLockPath() }

// makePrivateDir makes a directory that only the system and administrators can open.
func makePrivateDir(dir string) error { return privateDir(dir) }

func (o *platformOptions) checkPlatform() error { return nil }

func newParts(a *agent) (parts, error) {
	if a.opts.dataplane != dataplaneWindows {
		return parts{}, fmt.Errorf("--dataplane=%s does not work on Windows; use windows or auto", a.opts.dataplane)
	}
	v1, err1 := hns.Open()
	v2, err2 := hcn.Open()
	if err := errors.Join(err1, err2); err != nil {
		return parts{}, err
	}
	return newHNS(a, windowsNode{v1: v1, v2: v2, routes: wiring.Routes{}, host: a.host.monitor})
}
