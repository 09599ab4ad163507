// Command prepare builds the files that many tests share, before they run: the VPP plugin takes a minute, and the time of a
// test is limited.
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
		return // tests of VPP are skipped, with a message of one line
	}
	if _, err := vpptest.Plugin(ctx, ""); err != nil {
		fmt.Fprintf(os.Stderr, "prepare: %v\n", err) // the tests that need it report the error, too
	}
}
