package kube

import (
	"log/slog"

	"k8s.io/klog/v2"
)

// UseLogger makes client-go log as the rest of the program does. client-go has one logger for a process, so main calls this once. Its
// own messages are about connections that it retries: INFO of it is noise, and left out.
func UseLogger(log *slog.Logger) {
	klog.SetSlogLogger(log.With("component", "client-go"))
}
