package hostports

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Command runs the nft command in the process's own network namespace.
func Command(ctx context.Context, script string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "nft", args...)
	cmd.Stdin = strings.NewReader(script)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("nft %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// isAbsent: nft says that there is no such table.
func isAbsent(err error) bool {
	return err != nil && strings.Contains(err.Error(), "No such file or directory")
}

// drop removes a table, if there is one.
func drop(ctx context.Context, nft NFT, family, table string) error {
	_, err := nft(ctx, fmt.Sprintf("table %[1]s %[2]s {}\ndelete table %[1]s %[2]s\n", family, table), "-f", "-")
	return err
}
