package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestOptionsThatCannotWork: options that cannot work are reported at once with their flag, before anything is made.
func TestOptionsThatCannotWork(t *testing.T) {
	long := strings.Repeat("x", 254)
	for _, tc := range []struct {
		change func(*options)
		want   string
	}{
		{func(o *options) { o.nodeName = "a/b" }, `--node-name "a/b"`},
		{func(o *options) { o.nodeName = "../x" }, `--node-name "../x"`},
		{func(o *options) { o.nodeName = "a\nb" }, `--node-name "a\nb"`},
		{func(o *options) { o.nodeName = " " }, `--node-name " "`},
		{func(o *options) { o.nodeName = "a." }, `--node-name "a."`},
		{func(o *options) { o.nodeName = long }, "--node-name"},
		{func(o *options) { o.cniSocket = "cni.sock" }, `--cni-socket: socket "cni.sock": must be an absolute path`},
		{func(o *options) { o.cniSocket = "/" + long }, "of at most 107 bytes"},
		{func(o *options) { o.nat.tcp = -5 * time.Second }, "--nat-tcp-timeout -5s: must be from 1s"},
		{func(o *options) { o.nat.icmp = time.Millisecond }, "--nat-icmp-timeout 1ms: must be from 1s"},
		{func(o *options) { o.nat.udp = 1e6 * time.Hour }, "--nat-udp-timeout"},
		{func(o *options) { o.filter = "ebpf" }, `--linux-backend "ebpf": use nft, iptables or auto`},
		{func(o *options) { o.runDir = "run" }, "--run-dir"},
		{func(o *options) { o.services.reservedAddresses = []string{"dns"} }, `--reserved-addresses: address "dns": write it as 192.0.2.1`},
		{func(o *options) { o.services.policySetLimit = -1 }, "--policy-set-limit: -1 is not between 0 and 1048576"},
		{func(o *options) { o.services.policySetLimit = 1<<20 + 1 }, "--policy-set-limit: 1048577 is not between 0 and 1048576"},
	} {
		o := validOptions(t)
		tc.change(o)
		if err := o.complete(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		}
	}
	for _, name := range []string{"node-1", "n", "ip-10-0-0-1.eu.compute.internal", "Node_2"} {
		o := validOptions(t)
		o.nodeName = name
		if err := o.complete(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNodeNameOfTheHost: without --node-name the node name is derived from the host name, as in kubelet.
func TestNodeNameOfTheHost(t *testing.T) {
	o := validOptions(t)
	o.nodeName = ""
	if err := o.complete(); err != nil || o.nodeName == "" || o.nodeName != strings.ToLower(o.nodeName) {
		t.Errorf("node name %q, error %v", o.nodeName, err)
	}
}

func validOptions(t *testing.T) *options {
	o := defaultOptions()
	dir := t.TempDir()
	o.nodeName, o.filter, o.linuxNames, o.kubernetes.mode = "node-1", "auto", linuxNamesContiv, kubernetesOff
	o.runDir, o.dataDir = filepath.Join(dir, "run"), filepath.Join(dir, "data")
	return o
}

// TestConntrackInvalidFlag: the flag reaches the rules of the Linux driver; by default the rules drop packets in the state INVALID.
func TestConntrackInvalidFlag(t *testing.T) {
	for _, args := range [][]string{nil, {"--disable-conntrack-invalid-check"}} {
		o := defaultOptions()
		flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
		o.register(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		if got := linuxRules(o, 10, false).DisableConntrackInvalid; got != (len(args) > 0) {
			t.Errorf("%v: %v", args, got)
		}
	}
}
