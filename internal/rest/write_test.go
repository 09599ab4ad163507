package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestWriteJSON checks the status, the type and the format of answers. A body that cannot be encoded is an error of the server, with valid JSON.
func TestWriteJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(http.ResponseWriter)
		code  int
		text  string
	}{
		"body":        {func(w http.ResponseWriter) { WriteJSON(w, http.StatusCreated, map[string]int{"n": 1}) }, http.StatusCreated, "{\n  \"n\": 1\n}\n"},
		"error":       {func(w http.ResponseWriter) { WriteError(w, http.StatusNotFound, errors.New("no pod")) }, http.StatusNotFound, "{\n  \"error\": \"no pod\"\n}\n"},
		"not encoded": {func(w http.ResponseWriter) { WriteJSON(w, http.StatusOK, func() {}) }, http.StatusInternalServerError, "encode the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			tc.write(w)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.text) || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type: %s", got)
			}
		})
	}
}

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
