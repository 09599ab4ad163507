// Package daemon is what contiv's long-running programs (contiv-agent, contiv-ksr) have in common, so that all are operated alike: how a
// program is called and ends (command.go), the flags by which it is reached and reaches etcd and Kubernetes (flags.go), and what it reports
// itself (telemetry.go). What a program does is its own main package's.
package daemon
