package main

import (
	"errors"
	"fmt"
	"time"
)

func (o *platformOptions) checkPlatform() error { return o.nat.check() }

// check rejects timeouts that VPP would misread: VPP takes them as unsigned whole seconds.
func (o *natOptions) check() error {
	var errs []error
	for _, t := range []struct {
		flag  string
		value time.Duration
	}{
		{"nat-udp-timeout", o.udp}, {"nat-tcp-timeout", o.tcp}, {"nat-tcp-transitory-timeout", o.opening},
		{"nat-icmp-timeout", o.icmp},
	} {
		if t.value != 0 && (t.value < time.Second || t.value > maxNATTimeout) {
			errs = append(errs, fmt.Errorf("--%s %s: must be from 1s to %s, or 0", t.flag, t.value, maxNATTimeout))
		}
	}
	return errors.Join(errs...)
}

const maxNATTimeout = 7 * 24 * time.Hour
