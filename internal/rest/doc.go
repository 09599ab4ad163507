// Package rest is the interface by which plugins publish REST handlers without a dependency on the server
// (internal/httpapi). Handlers read the bodies of requests and write answers by its functions, so that all of them do it alike.
package rest
