// Package filelock keeps processes apart by flock(2) on a file: programs and tests that would use the same network namespaces, or build into the
// same folder. The kernel frees a lock when its process ends, however it ends.
package filelock
