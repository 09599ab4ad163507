package rest

import "net/http"

// The paths that callers without a token may request. The probes are for the kubelet.
const (
	LivenessPath  = "/liveness"
	ReadinessPath = "/readiness"
	MetricsPath   = "/metrics"
	IPAMPath      = "/contiv/v1/ipam"
)

// HTTPHandlers registers handlers; the server adds logging, authentication and error format.
type HTTPHandlers interface {
	// RegisterHTTPHandler serves path with handler for the given methods (GET when none is given).
	RegisterHTTPHandler(path string, handler http.HandlerFunc, methods ...string)
}
