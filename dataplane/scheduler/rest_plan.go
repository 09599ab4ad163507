package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"contiv.dev/vswitch/dataplane/txn"
)

// decodePlan reads the body of a dry run.
func (s *Scheduler) decodePlan(body io.Reader) (*txn.Txn, error) {
	var in struct {
		Values []struct {
			Key   string          `json:"key"`
			Value json.RawMessage `json:"value"`
		} `json:"values"`
	}
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, &paramError{param: "body", err: err}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, &paramError{param: "body", err: errors.New("more than one JSON value")}
	}
	t := &txn.Txn{Kind: txn.Update, Description: "REST dry run"}
	for i, v := range in.Values {
		at := func(field string) string { return fmt.Sprintf("values[%d].%s", i, field) }
		if v.Key == "" {
			return nil, &paramError{param: at("key"), err: errors.New("missing")}
		}
		kv := txn.KV{Key: v.Key}
		if text := strings.TrimSpace(string(v.Value)); text == "" {
			return nil, &paramError{param: at("value"), err: errors.New("missing (null deletes)")}
		} else if text != "null" {
			m, err := s.cfg.Decode(v.Key, v.Value)
			if err != nil {
				return nil, &paramError{param: at("value"), err: err}
			}
			kv.Value = m
		}
		t.Values = append(t.Values, kv)
	}
	return t, nil
}
