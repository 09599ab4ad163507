package diag

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"contiv.dev/vswitch/internal/rest"
)

const (
	// traceTimeout ends a recording that is not ended by its client.
	traceTimeout = 60 * time.Second
	// traceGrace bounds the cleanup after a recording whose client has disconnected.
	traceGrace   = 10 * time.Second
	tracePackets = 200
	// MaxBackends is the maximum number of backends of a service in a request.
	MaxBackends     = 256
	maxOtherSources = 64
)

// recording is a running trace. finish stops it, removes everything that it added, and returns what was recorded. The goroutine that started the
// recording calls it.
type recording interface {
	finish(ctx context.Context) (*Capture, error)
}

// serveTrace records until POST /contiv/v1/trace/stop, or until the client disconnects. The answer has two lines: the first
// reports that packets are recorded from now on, the second has the packets.
func (s *Service) serveTrace(w http.ResponseWriter, r *http.Request) {
	var req TraceRequest
	if !rest.ReadJSON(w, r, maxBody, &req) {
		return
	}
	if err := req.validate(); err != nil {
		rest.WriteError(w, http.StatusBadRequest, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), traceTimeout)
	defer cancel()
	id, err := s.begin(cancel)
	if err != nil {
		rest.WriteError(w, http.StatusConflict, err)
		return
	}
	defer s.end()
	rec, err := s.startNoted(ctx, req)
	if err != nil {
		rest.WriteError(w, http.StatusServiceUnavailable, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc, flush := json.NewEncoder(w), http.NewResponseController(w)
	if enc.Encode(TraceEvent{ID: id}) == nil && flush.Flush() == nil {
		<-ctx.Done()
	}
	clean, done := context.WithTimeout(context.WithoutCancel(ctx), traceGrace)
	defer done()
	capture, err := rec.finish(clean)
	if err == nil {
		err = s.removeNote()
	}
	ev := TraceEvent{Capture: capture}
	if err != nil {
		ev.Error = err.Error()
	}
	if err := enc.Encode(ev); err != nil {
		s.Log.Debug("the client went away", "error", err)
	}
}

func (r *TraceRequest) validate() error {
	if r.Packets == 0 {
		r.Packets = tracePackets
	}
	switch {
	case !r.Source.IsValid() || !r.Dest.IsValid() || r.Source.Is4() != r.Dest.Is4():
		return fmt.Errorf("source %s and destination %s: give two addresses of one family", r.Source, r.Dest)
	case r.Packets < 1 || r.Packets > 1000:
		return fmt.Errorf("%d packets: must be from 1 to 1000", r.Packets)
	case len(r.Backends) > 0 && (!r.Service || r.Proto == protoICMP):
		return errors.New("backends: give them with service, and tcp or udp")
	case len(r.OtherSources) > maxOtherSources:
		return fmt.Errorf("%d other sources: must be at most %d", len(r.OtherSources), maxOtherSources)
	case len(r.Backends) > MaxBackends:
		return fmt.Errorf("%d backends: must be at most %d", len(r.Backends), MaxBackends)
	}
	for _, a := range r.addrs() {
		if a.Zone() != "" { // a zone is free text, which nft and VPP would read as part of a command
			return fmt.Errorf("address %q has a zone: give it without", a)
		}
	}
	for _, a := range r.OtherSources {
		if !a.IsValid() || a.Is4() != r.Dest.Is4() {
			return fmt.Errorf("other source %s: must be an address of the destination's family", a)
		}
	}
	for _, b := range r.Backends {
		if !b.IsValid() || b.Port() == 0 || b.Addr().Is4() != r.Dest.Is4() {
			return fmt.Errorf("backend %s: must be address and port, of the destination's family", b)
		}
	}
	return checkProto(r.Proto, r.Port)
}

// addrs returns all addresses of the request.
func (r *TraceRequest) addrs() []netip.Addr {
	all := append([]netip.Addr{r.Source, r.Dest}, r.OtherSources...)
	for _, b := range r.Backends {
		all = append(all, b.Addr())
	}
	return all
}

func checkProto(proto string, port uint16) error {
	switch {
	case proto == protoICMP && port == 0, (proto == protoTCP || proto == protoUDP) && port != 0:
		return nil
	}
	return fmt.Errorf("protocol %q with port %d: use icmp without a port, or tcp or udp with one", proto, port)
}

func (s *Service) startRecording(ctx context.Context, req TraceRequest) (recording, error) {
	if s.CLI != nil {
		return startVPPTrace(ctx, s, req)
	}
	return startNftTrace(ctx, s, req)
}

// begin reserves the recording for the caller.
func (s *Service) begin(stop context.CancelFunc) (id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		return "", errBusy
	}
	s.number++
	s.stop, s.recorder = stop, strconv.Itoa(s.number)
	return s.recorder, nil
}

func (s *Service) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = nil
}

// serveTraceStop: POST /contiv/v1/trace/stop {"id": "1"}
func (s *Service) serveTraceStop(w http.ResponseWriter, r *http.Request) {
	var ev TraceEvent
	if !rest.ReadJSON(w, r, maxBody, &ev) {
		return
	}
	s.mu.Lock()
	stop := s.stop
	if s.recorder != ev.ID {
		stop = nil
	}
	s.mu.Unlock()
	if stop == nil {
		rest.WriteError(w, http.StatusNotFound, fmt.Errorf("there is no recording %q", ev.ID))
		return
	}
	stop()
	rest.WriteJSON(w, http.StatusOK, ev)
}
