package atonce

import (
	"flag"
	"fmt"
)

// Limit lets n tests that call t.Parallel run side by side, unless the command line has -parallel. TestMain calls it before m.Run.
func Limit(n int) {
	if err := flag.Set("test.parallel", fmt.Sprint(n)); err != nil {
		panic(fmt.Sprintf("tests at a time: %v; use a positive number", err)) // package testing has defined the flag
	}
}
