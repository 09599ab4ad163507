package daemon

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// minFiles is how many files a program must be able to have open: sockets of netlink and VPP, namespaces of pods, callers, and the
// embedded etcd, which wants 150 for itself and waits without end when it has fewer.
const minFiles = 512

// checkFiles refuses to start with too few, which shows as hanging here and there.
func checkFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	// Go has raised it to what it may be.
	if limit.Cur < minFiles {
		return fmt.Errorf("the limit of open files is %d, and %d are needed: raise it (ulimit -n; LimitNOFILE of systemd)",
			limit.Cur, minFiles)
	}
	return nil
}
