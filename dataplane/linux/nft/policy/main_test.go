package policy

import (
	"os"
	"testing"

	"contiv.dev/vswitch/test/testbed/atonce"
)

// TestMain runs tests with separate namespaces in parallel. They wait for the kernel most of the time.
func TestMain(m *testing.M) {
	atonce.Limit(4)
	os.Exit(m.Run())
}
