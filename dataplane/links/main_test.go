package links

import (
	"fmt"
	"os"
	"testing"

	"contiv.dev/vswitch/test/testbed/ownns"
)

// A resync looks at every link that exists, and removes the links of an agent that it has no record of.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Println("links: not root; only the tests that need no network namespace run")
	}
	os.Exit(ownns.Run(m, "cvt-machine"))
}
