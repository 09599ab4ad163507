package diag

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"time"

	"contiv.dev/vswitch/internal/rest"
)

// serveConfig: GET /contiv/v1/configuration
func (s *Service) serveConfig(w http.ResponseWriter, _ *http.Request) {
	if s.Configuration == nil {
		rest.WriteError(w, http.StatusNotFound, fmt.Errorf("the configuration of the agent of %s is unknown", s.Info.Node))
		return
	}
	c, err := s.Configuration()
	if err != nil {
		rest.WriteError(w, http.StatusInternalServerError, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, c)
}

const (
	// rulesetTimeout bounds nft, which takes seconds for 100,000 rules.
	rulesetTimeout = 20 * time.Second
	// maxRuleset bounds the part of nft's output that is kept.
	maxRuleset = 64 << 20
)

// serveRuleset: GET /contiv/v1/ruleset returns all rules of nf_tables on the node, also those of other
// programs.
func (s *Service) serveRuleset(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), rulesetTimeout)
	defer cancel()
	out, errs := bounded{limit: maxRuleset}, bounded{limit: 4 << 10}
	cmd := exec.CommandContext(ctx, "nft", "-a", "list", "ruleset")
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		rest.WriteError(w, http.StatusBadGateway, fmt.Errorf("nft list ruleset: %w: %s", err, bytes.TrimSpace(errs.Bytes())))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(out.Bytes()) // the client may have disconnected
}

// bounded keeps the beginning of the data that is written to it.
type bounded struct {
	bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); room > 0 {
		_, _ = b.Buffer.Write(p[:min(room, len(p))]) // never fails
	}
	return len(p), nil
}
