package rest

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"testing"
)

// TestWriteArray checks that the text equals that of the encoder, for any number of items.
func TestWriteArray(t *testing.T) {
	for n := range 4 {
		list := []map[string]any{}
		for i := range n {
			list = append(list, map[string]any{"n": i, "of": []int{1, 2}})
		}
		w := httptest.NewRecorder()
		if err := WriteArray(w, slices.Values(list)); err != nil {
			t.Fatal(err)
		}
		want, err := json.MarshalIndent(list, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.TrimSpace(w.Body.Bytes()); !bytes.Equal(got, want) {
			t.Errorf("%d items: %s, want %s", n, got, want)
		}
	}
}

// TestWriteArrayThatFails checks that an interrupted answer is not valid JSON.
func TestWriteArrayThatFails(t *testing.T) {
	w := httptest.NewRecorder()
	if err := WriteArray(w, slices.Values([]any{1, func() {}})); err == nil || json.Valid(w.Body.Bytes()) {
		t.Errorf("%v: %s", err, w.Body)
	}
}
