package podmanager

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"contiv.dev/vswitch/internal/cniapi"
)

const nsfsMagic = 0x6e736673

// lookNetns finds out what is at the path of a network namespace.
func lookNetns(path string) (inode uint64, state netnsState) {
	if cniapi.IsGUID(path) {
		return 0, netnsUnknown // of Windows, of which there may be one in memory: no file
	}
	var st syscall.Stat_t
	err := syscall.Stat(path, &st)
	if errors.Is(err, fs.ErrNotExist) {
		// Its directory may not be mounted into our container; then we know nothing.
		if _, err := os.Stat(filepath.Dir(path)); err == nil || strings.HasPrefix(path, "/proc/") {
			return 0, netnsGone
		}
		return 0, netnsUnknown
	}
	var fst syscall.Statfs_t
	if err != nil || syscall.Statfs(path, &fst) != nil || int64(fst.Type) != nsfsMagic {
		return 0, netnsUnknown // the mount on it has not reached us
	}
	return st.Ino, netnsSeen
}
