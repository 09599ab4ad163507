package vpp

import (
	"os"
	"testing"

	"contiv.dev/vswitch/test/testbed/ownns"
)

// VPP computes a fanout group's number from an interface's name and its own number of the interface: several VPPs in one network namespace would
// use the same group.
func TestMain(m *testing.M) { os.Exit(ownns.Run(m, "cvvppt")) }
