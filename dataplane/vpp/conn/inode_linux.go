package conn

import (
	"os"
	"syscall"
)

// inodeOf returns the inode number of a file.
func inodeOf(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
