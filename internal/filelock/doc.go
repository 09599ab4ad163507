// Package filelock separates processes by flock(2) on a file: programs and tests that would use the same network namespaces, or build into the
// same folder. The kernel releases a lock when its process ends, in whatever way.
package filelock
