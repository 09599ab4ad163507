package netlink

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Println("netlink: not root; only the tests that need no network namespace run")
	}
	os.Exit(m.Run())
}
