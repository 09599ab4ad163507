// Package daemon is the common part of contiv's long-running programs (contiv-agent, contiv-ksr), so that all are operated alike: how a
// program is started and stopped (command.go), and the metrics and health that it reports (telemetry.go). Flags are registered by the packages
// whose configurations they set (httpapi.Config, clusterdb.Config, kube.Config). The work of a program is in its own main package.
package daemon
