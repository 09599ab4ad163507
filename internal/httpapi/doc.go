// Package httpapi is the agent's REST server: the one place that listens, authenticates and formats errors, so that plugins only register
// handlers (internal/rest). It listens on a loopback address unless it has TLS and a token, and on a root-only unix socket.
//
// The kind of caller determines the permitted requests (auth.go): a caller that can open the socket or sends the token is trusted and may
// send every request; a caller that sends the read-only token (Prometheus) may only read (GET). A server that has a token answers callers
// without one only on the kubelet's probes, with the status and without details; a server on a loopback address that has no token answers
// probes, metrics and the node's IPAM.
//
// The resources that callers can occupy are bounded (limits.go, connlimiter.go): connections, requests at once, and the time to send a request
// and to receive an answer. Long lists are streamed (internal/rest).
//
// The certificate, its key and the token are files, which may be replaced at any time (reload.go): the next handshake, or the next request,
// uses the new ones. If a replacement cannot be read, that is logged and the old one stays.
package httpapi
