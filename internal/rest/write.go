package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
)

// WriteJSON answers with body as JSON. It is indented, since operators read it with curl. All answers in JSON are written by this function, WriteError
// or WriteArray, so that they have one format (test/arch).
func WriteJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		WriteError(w, http.StatusInternalServerError, fmt.Errorf("encode the answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // fails only if the client has disconnected
}

// WriteError answers with {"error": "…"}.
func WriteError(w http.ResponseWriter, status int, err error) {
	WriteJSON(w, status, map[string]string{"error": err.Error()})
}

// WriteArray answers with a JSON array of the items, which it encodes one by one: the whole answer is never in memory. An
// answer that is interrupted, because the client has disconnected or an item cannot be encoded, lacks its end and is not
// valid JSON.
func WriteArray[T any](w http.ResponseWriter, items iter.Seq[T]) error {
	w.Header().Set("Content-Type", "application/json")
	separator, end := "[\n  ", "[]\n"
	for item := range items {
		text, err := json.MarshalIndent(item, "  ", "  ")
		if err != nil {
			return fmt.Errorf("encode an item of a list: %w", err)
		}
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		separator, end = ",\n  ", "\n]\n"
	}
	_, err := io.WriteString(w, end)
	return err
}
