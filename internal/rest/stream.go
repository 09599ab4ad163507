package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
)

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
