package clusterdb

import (
	"fmt"
	"path/filepath"
)

// checkBackend checks the database of an embedded etcd that does not run. If the database were damaged, etcd would panic in its own
// goroutine; this ends the agent without a message about the fix.
func checkBackend(dir string) error { return checkBolt(filepath.Join(dir, "member", "snap", "db")) }

// recovered runs f and converts a panic into an error.
func recovered(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}
