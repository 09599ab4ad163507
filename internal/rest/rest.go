package rest

import "net/http"

// HTTPHandlers registers handlers; the server adds logging, authentication and error format.
type HTTPHandlers interface {
	// RegisterHTTPHandler serves path with handler for the given methods (GET when none is given).
	RegisterHTTPHandler(path string, handler http.HandlerFunc, methods ...string)
}
