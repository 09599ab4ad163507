package conn

import (
	"os"
	"syscall"
)

// inodeOf is the number of a file in its file system.
func inodeOf(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
