package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

const (
	defaultRunDir  = "/run/contiv"
	defaultDataDir = "/var/lib/contiv"
)

// platformOptions holds the flags of dataplanes that only Linux has.
type platformOptions struct {
	nat natOptions
}

func (o *platformOptions) registerPlatform(f *pflag.FlagSet) {
	o.nat.register(f)
}

// countNATByPod returns the shortest interval at which translated connections may be counted by pod; 0: they are not.
func (o *platformOptions) countNATByPod() time.Duration { return o.nat.byPod }

// findDataplane resolves --dataplane=auto.
func (o *options) findDataplane() string {
	if _, err := os.Stat(o.vppSocket); err == nil {
		return dataplaneVPP
	}
	return dataplaneLinux
}

func (a *agent) newHostMonitor() hostMonitor {
	if a.windows != nil {
		return a.windows.host
	}
	return newKernelHost(a.log)
}

func (a *agent) lockPath() (string, error) {
	if a.windows != nil { // an HNS in memory belongs to this agent only
		return filepath.Join(a.opts.runDir, "dataplane.lock"), nil
	}
	return nodeLockPath()
}

func newParts(a *agent) (parts, error) {
	if a.opts.dataplane == dataplaneLinux {
		return newLinux(a)
	}
	if a.windows != nil {
		return newHNS(a, *a.windows)
	}
	if a.opts.dataplane == dataplaneWindows {
		return parts{}, errors.New("--dataplane=windows works on Windows only; use vpp, linux or auto")
	}
	return newVPP(a), nil
}

// makePrivateDir makes a directory that only root can open.
func makePrivateDir(dir string) error { return os.MkdirAll(dir, 0o700) }
