package compiler

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs more random cases than rapid does by default. They take about a second. -rapid.checks chooses another number.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1500"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}
