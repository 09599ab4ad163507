package intdataplane

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain: tests that have namespaces of their own run side by side. They wait for the kernel and for packets most of the time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
