package policy

import (
	"os"
	"testing"

	"contiv.dev/vswitch/test/testbed/atonce"
)

// TestMain: tests that have namespaces of their own run side by side. They wait for the kernel most of the time.
func TestMain(m *testing.M) {
	atonce.Limit(4)
	os.Exit(m.Run())
}
