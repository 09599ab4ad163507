package pool

import (
	"os"
	"testing"

	"contiv.dev/vswitch/test/testbed/ownns"
)

// A pool takes over the devices that it finds, as if the previous agent had
// made them.
func TestMain(m *testing.M) { os.Exit(ownns.Run(m, "cvpool")) }
