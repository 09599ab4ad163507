package daemon

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// minFiles is the number of files that a program must be able to have open: sockets of netlink and VPP, namespaces of pods,
// callers, and the embedded etcd, which reserves 150 for itself and waits without end when it has fewer.
const minFiles = 512

// checkFiles returns an error if the limit of open files is too low, because a low limit shows as hangs in unrelated places.
func checkFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	// Go has already raised the soft limit to the hard limit.
	if limit.Cur < minFiles {
		return fmt.Errorf("the limit of open files is %d, and %d are needed: raise it (ulimit -n; LimitNOFILE of systemd)",
			limit.Cur, minFiles)
	}
	return nil
}
