package nsdo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Create makes a network namespace with lo up, and mounts it at path, as ip netns add does. The file must not exist: the error is fs.ErrExist
// if it does. Remove ends the namespace, once no process uses it.
func Create(path string) error {
	f, openErr := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if openErr != nil {
		return fmt.Errorf("create network namespace: %w", openErr)
	}
	_ = f.Close() // nothing was written
	var err error
	onOwnThread(func() { err = mountNew(path) }) // the thread is not unlocked
	if err != nil {
		return errors.Join(fmt.Errorf("create network namespace %s: %w", path, err), Remove(path))
	}
	return nil
}

// mountNew moves the calling thread into a new namespace and mounts the namespace at path.
func mountNew(path string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	if err := unix.Mount(threadNS, path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// Remove unmounts the namespace at path and removes the file. The error is fs.ErrNotExist if there is no file.
func Remove(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unmount network namespace %s: %w", path, err)
	}
	return os.Remove(path)
}
