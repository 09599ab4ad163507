package main

import "syscall"

const (
	nsfsMagic = 0x6e736673
	procMagic = 0x9fa0 // type of namespaces on kernels before 3.19
)

// isNamespace reports whether the path is a namespace. If that cannot be determined, it returns true, and the agent checks.
func isNamespace(path string) bool {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return true
	}
	return int64(fs.Type) == nsfsMagic || int64(fs.Type) == procMagic
}

// checkPlatformNetns leaves the check to checkNetns: on Linux a namespace is a file.
func checkPlatformNetns(string) (handled bool, err error) { return false, nil }
