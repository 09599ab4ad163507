package controller

import (
	"flag"
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite testdata/*.txtar")
	goleak.VerifyTestMain(m)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
