// Command prepare builds what many tests share, before they run: the VPP plugin takes a minute, and a test has only so long.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if _, ok := vpptest.Find(); !ok {
		return // tests of VPP are skipped, with a line
	}
	if _, err := vpptest.Plugin(ctx, ""); err != nil {
		fmt.Fprintf(os.Stderr, "prepare: %v\n", err) // the tests that need it say so, too
	}
}
