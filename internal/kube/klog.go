package kube

import (
	"log/slog"

	"k8s.io/klog/v2"
)

// UseLogger makes client-go use the logger of the program. client-go has one logger for a process, so main calls this once. Its own
// INFO messages are about connections that it retries; they are not needed.
func UseLogger(log *slog.Logger) {
	klog.SetSlogLogger(log.With("component", "client-go"))
}
