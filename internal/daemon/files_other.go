//go:build !linux

package daemon

// checkFiles checks nothing: Windows has no limit of open files that an administrator sets.
func checkFiles() error { return nil }
