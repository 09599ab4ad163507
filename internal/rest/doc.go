// Package rest is the interface by which plugins publish REST handlers without a dependency on the server
// (internal/httpapi).
package rest
