package main

import "syscall"

const (
	nsfsMagic = 0x6e736673
	procMagic = 0x9fa0 // of a namespace on kernels before 3.19
)

// isNamespace reports whether the path leads to a namespace; what cannot be determined is left to the agent.
func isNamespace(path string) bool {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return true
	}
	return int64(fs.Type) == nsfsMagic || int64(fs.Type) == procMagic
}

// checkPlatformNetns leaves it to checkNetns: a namespace is a file.
func checkPlatformNetns(string) (handled bool, err error) { return false, nil }
