// Package httpapi is the agent's REST server: the one place that listens, authenticates and shapes errors, so that plugins
// only register handlers (internal/rest). It listens on a loopback address unless it has TLS and a token, and on a root-only
// unix socket.
package httpapi
