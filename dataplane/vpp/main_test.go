package vpp

import (
	"os"
	"testing"

	"contiv.dev/vswitch/test/testbed/ownns"
)

// VPP makes a fanout group's number of an interface's name and its own number for it: several VPPs in one network namespace would take the same one.
func TestMain(m *testing.M) { os.Exit(ownns.Run(m, "cvvppt")) }
