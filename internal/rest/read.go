package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// ReadJSON decodes the body of a request, of at most max bytes. If it cannot, it answers with an error and returns false.
func ReadJSON(w http.ResponseWriter, r *http.Request, max int64, into any) (ok bool) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		WriteError(w, http.StatusBadRequest, fmt.Errorf("request: %w", err))
	}
	return err == nil
}
