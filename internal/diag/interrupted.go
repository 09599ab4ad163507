package diag

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// recordingFile exists while the dataplane records packets for a trace. A new agent finds by it that the last one ended during a trace.
const recordingFile = "trace-running"

// startNoted starts a recording; recordingFile is written first.
func (s *Service) startNoted(ctx context.Context, req TraceRequest) (recording, error) {
	if err := os.WriteFile(s.recordingPath(), nil, 0o600); err != nil {
		return nil, fmt.Errorf("note that a recording runs: %w", err)
	}
	return s.startRecording(ctx, req)
}

func (s *Service) recordingPath() string { return filepath.Join(s.Dir, recordingFile) }

func (s *Service) removeNote() error {
	if err := os.Remove(s.recordingPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// warnAfter is the number of attempts after which the log says that a recording goes on. VPP may start after the agent.
const warnAfter = 30

// EndInterrupted ends a recording that an earlier agent has not ended. After an error it tries again every second.
func (s *Service) EndInterrupted(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := s.endInterrupted(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if attempt == warnAfter {
			s.Log.Warn("the trace of an earlier agent still records packets; the agent tries to end it every second", "error", err)
		}
		if !pause(ctx, time.Second) {
			return nil
		}
	}
}

func (s *Service) endInterrupted(ctx context.Context) error {
	if _, err := os.Stat(s.recordingPath()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := s.begin(func() {}); err != nil {
		return err // the recording that runs replaces the earlier one
	}
	defer s.end()
	if err := s.removeRecording(ctx); err != nil {
		return err
	}
	return s.removeNote()
}

func (s *Service) removeRecording(ctx context.Context) error {
	if s.CLI != nil {
		return s.endVPPTrace(ctx)
	}
	nft, err := exec.LookPath("nft")
	if err != nil {
		return nil // without the tool, an earlier agent has recorded nothing
	}
	return runNft(ctx, nft, "add table inet "+traceTable+"\ndelete table inet "+traceTable)
}
