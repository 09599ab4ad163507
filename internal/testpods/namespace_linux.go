package testpods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/lifecycle"
)

// makeNamespace makes a network namespace and mounts it at path, with the loopback up.
func makeNamespace(jobs *lifecycle.Group, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	_ = f.Close() // nothing was written
	done := make(chan error, 1)
	jobs.Go("namespace "+path, func(context.Context) error {
		// The thread is not unlocked, so that it ends with the job.
		runtime.LockOSThread()
		done <- mountNew(path)
		return nil
	})
	if err := <-done; err != nil {
		return errors.Join(fmt.Errorf("network namespace %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// mountNew moves the calling thread into a new namespace and mounts the namespace at path.
func mountNew(path string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return errors.Join(err, unix.Unmount(path, unix.MNT_DETACH))
	}
	return nil
}

// removeNamespace unmounts and removes the namespace at path; it returns nil if there is none.
func removeNamespace(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
