package pool

import (
	"os"
	"testing"

	"contiv.dev/vswitch/test/testbed/ownns"
)

// A pool takes the devices that it finds for those of the agent before.
func TestMain(m *testing.M) { os.Exit(ownns.Run(m, "cvpool")) }
