package kube

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
)

// startFromLocal pushes the local copy, unless the API server has answered in the meantime.
func (s *Source) startFromLocal(ctx context.Context) error {
	synced, missing := s.Synced()
	if synced {
		return nil
	}
	values, why := s.loadLocal(), "the API server does not respond"
	if s.Connected() == nil {
		why = "the API server has not sent all objects yet"
	}
	if len(values) == 0 {
		s.Log.Warn(why+", and there is no local copy of the Kubernetes state to start from; "+
			"waiting for it", "server", s.Client.host, "missing", missing, "error", s.Connected())
		return nil
	}
	ev := s.mirror.local(values)
	if ev == nil {
		return nil
	}
	s.Log.Warn(why+"; starting from the local copy of the Kubernetes state",
		"server", s.Client.host, "missing", missing, "objects", len(values), "error", s.Connected())
	return s.push(ctx, ev)
}

// loadLocal decodes the local copy. Values that cannot be decoded are left out.
func (s *Source) loadLocal() map[string]proto.Message {
	if s.Local == nil {
		return nil
	}
	raw, err := s.Local.Load()
	if err != nil {
		s.Log.Error("the local copy of the Kubernetes state cannot be used", "error", err)
		return nil
	}
	values := make(map[string]proto.Message, len(raw))
	for key, data := range raw {
		keyword := model.KeywordOf(key)
		if model.New(keyword) == nil {
			continue // written by a later version
		}
		value, err := decode(keyword, data, s.in)
		if err != nil {
			s.Log.Warn("a value of the local copy of the Kubernetes state cannot be read and is ignored", "key", key, "error", err)
			continue
		}
		values[key] = value
	}
	return values
}

// save keeps the local copy up to date, late and in batches: one write to the disk per interval, however many changes there
// are.
func (s *Source) save(ctx context.Context) error {
	w := &writer{source: s}
	defer w.write()
	// The first write compares everything. It is delayed while the agent starts: the copy on the disk is nearly up to date.
	if err := pause(ctx, firstSave*s.SaveInterval); err != nil {
		return err
	}
	ticker := time.NewTicker(s.SaveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			w.write()
		}
	}
}

// writer writes the local copy.
type writer struct {
	source *Source
	clean  bool // the copy has only values that the mirror has written
	failed bool
}

// write writes the changes. The first time it compares the mirror with the copy, so that a restart without changes writes
// nothing.
func (w *writer) write() {
	s := w.source
	values := s.mirror.takeUnsaved()
	if values == nil {
		return
	}
	changes, err := w.changes(values)
	if err == nil {
		err = s.Local.Apply(changes)
	}
	if err != nil {
		if !w.failed {
			s.Log.Error("the local copy of the Kubernetes state is out of date", "error", err)
		}
		w.failed = true
		s.mirror.notSaved(values)
		return
	}
	w.clean, w.failed = true, false
}

func (w *writer) changes(values map[string]proto.Message) (map[string][]byte, error) {
	var there map[string][]byte
	if !w.clean {
		var err error
		if there, err = w.source.Local.Load(); err != nil {
			return nil, err
		}
	}
	changes := make(map[string][]byte, len(values))
	for key, value := range values {
		if value == nil {
			changes[key] = nil
			continue
		}
		data, err := Encode(value)
		if err != nil {
			return nil, err
		}
		if old, ok := there[key]; !ok || string(old) != string(data) {
			changes[key] = data
		}
	}
	for key := range there {
		if _, ok := values[key]; !ok {
			changes[key] = nil // the first time, values contains all values
		}
	}
	return changes, nil
}
