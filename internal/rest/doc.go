// Package rest is the door through which plugins publish REST handlers without knowing the server (internal/httpapi).
package rest
