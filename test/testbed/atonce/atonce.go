package atonce

import (
	"flag"
	"fmt"
)

// Limit allows n tests that call t.Parallel to run at the same time, unless the command line has -parallel. TestMain calls it
// before m.Run.
func Limit(n int) {
	if err := flag.Set("test.parallel", fmt.Sprint(n)); err != nil {
		panic(fmt.Sprintf("tests at a time: %v; use a positive number", err)) // not reached: package testing has defined the flag
	}
}
