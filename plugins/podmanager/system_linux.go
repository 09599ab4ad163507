package podmanager

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/internal/nsdo"
)

const nsfsMagic = 0x6e736673

// lookNetns determines the state of the network namespace at a path.
func lookNetns(path string) (inode uint64, state netnsState) {
	if cniapi.IsGUID(path) {
		return 0, netnsUnknown // a namespace of Windows in memory, which has no file
	}
	var st syscall.Stat_t
	err := syscall.Stat(path, &st)
	if errors.Is(err, fs.ErrNotExist) && nsdo.Hidden(path) {
		return 0, netnsUnknown
	}
	if errors.Is(err, fs.ErrNotExist) {
		// Its directory may not be mounted into our container; then the state is unknown.
		if _, err := os.Stat(filepath.Dir(path)); err == nil || strings.HasPrefix(path, "/proc/") {
			return 0, netnsGone
		}
		return 0, netnsUnknown
	}
	var fst syscall.Statfs_t
	if err != nil || syscall.Statfs(path, &fst) != nil || int64(fst.Type) != nsfsMagic {
		return 0, netnsUnknown // the mount at this path is not visible here
	}
	return st.Ino, netnsSeen
}
