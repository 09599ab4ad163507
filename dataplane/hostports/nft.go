package hostports

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Command runs the nft command in the process's own network namespace.
func Command(ctx context.Context, script string, args ...string) (string, error) {
	return command(ctx, "nft", script, args...)
}

// errAbsent means that our rules do not exist.
var errAbsent = errors.New("absent")

// isAbsent reports whether err means that the table does not exist, or that nft is not installed.
func isAbsent(err error) bool {
	return err != nil && (errors.Is(err, errAbsent) || errors.Is(err, exec.ErrNotFound) || strings.Contains(err.Error(), "No such file or directory"))
}

// drop removes a table, if it exists.
func drop(ctx context.Context, nft NFT, family, table string) error {
	_, err := nft(ctx, fmt.Sprintf("table %[1]s %[2]s {}\ndelete table %[1]s %[2]s\n", family, table), "-f", "-")
	return err
}
