package vpp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.fd.io/govpp/binapi/vlib"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// CLI runs one command on VPP's command line and returns its output. For a command that VPP rejects it returns an error
// with VPP's text.
func CLI(ctx context.Context, c *conn.Conn, command string) (string, error) {
	var reply vlib.CliInbandReply
	err := c.Invoke(ctx, &vlib.CliInband{Cmd: command}, &reply)
	var refused *conn.RetvalError
	if errors.As(err, &refused) && strings.TrimSpace(reply.Reply) != "" {
		return "", fmt.Errorf("%q: %s", command, strings.TrimSpace(reply.Reply))
	}
	if err != nil {
		return "", fmt.Errorf("%q: %w", command, err)
	}
	return reply.Reply, nil
}
