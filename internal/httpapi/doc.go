// Package httpapi is the agent's REST server: the one place that listens, authenticates and shapes errors, so that plugins only register
// handlers (internal/rest). It listens on a loopback address unless it has TLS and a token, and on a root-only unix socket.
//
// Who asks, decides what may be asked (auth.go): a caller that can open the socket or shows the token is trusted and may do everything; who
// shows the token that only reads (Prometheus) may look (GET). Without a token a server that has one answers nothing but the kubelet's
// probes, which get yes or no and no more; one on a loopback address that has none answers probes, metrics and the node's IPAM.
//
// What callers can make the server hold is bounded (limits.go, crowd.go), whatever they do: connections, requests at once, and the time for
// a request to come and for an answer to be taken. Long lists are streamed (internal/rest).
//
// The certificate, its key and the token are files, which may be replaced at any time (reload.go): the next handshake, or the next request,
// goes by the new ones. A replacement that cannot be read is reported and the old one stays.
package httpapi
