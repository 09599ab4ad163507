package diag

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"contiv.dev/vswitch/internal/rest"
)

// cliTimeout bounds a command: "show ip fib" of a large cluster takes seconds.
const cliTimeout = 20 * time.Second

// CLI runs one line on VPP's command line.
type CLI func(ctx context.Context, command string) (string, error)

// serveCLI: POST /vpp/cli {"command": "show interface"}
func (s *Service) serveCLI(w http.ResponseWriter, r *http.Request) {
	var req CLIRequest
	if !rest.ReadJSON(w, r, maxBody, &req) {
		return
	}
	if err := s.mayRun(req); err != nil {
		rest.WriteError(w, http.StatusForbidden, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), cliTimeout)
	defer cancel()
	if req.Write {
		s.Log.Warn("VPP CLI command that may write", "command", req.Command)
	}
	out, err := s.CLI(ctx, req.Command)
	if err != nil {
		rest.WriteError(w, http.StatusBadGateway, fmt.Errorf("VPP: %w", err))
		return
	}
	rest.WriteJSON(w, http.StatusOK, CLIReply{Output: out})
}

// mayRun returns an error if the command may not run. A command that writes must be allowed by both
// the request and the agent's configuration.
func (s *Service) mayRun(req CLIRequest) error {
	if s.CLI == nil {
		return fmt.Errorf("this node has no VPP: its dataplane is %s", s.Info.Dataplane)
	}
	if err := plainText(req.Command); err != nil {
		return err
	}
	if !req.Write {
		return readOnly(req.Command)
	}
	if !s.Info.CLIWrite {
		return fmt.Errorf("write access to the VPP CLI is disabled on %s: start the agent with --vpp-cli-write", s.Info.Node)
	}
	return nil
}
