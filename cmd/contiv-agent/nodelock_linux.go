package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// nodeLockDir does not depend on --run-dir; in a cluster it is the node's own directory (the chart mounts it). It has one file per network
// namespace.
const nodeLockDir = "/run/contiv"

// nodeLockPath returns the path of the lock file for the network namespace of this process.
func nodeLockPath() (string, error) {
	info, err := os.Stat("/proc/self/ns/net")
	if err != nil {
		return "", fmt.Errorf("network namespace of the agent: %w", err)
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	return filepath.Join(nodeLockDir, fmt.Sprintf("dataplane-%d.lock", inode)), nil
}

// privateDir makes a directory in which only root can create files.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s belongs to user %d and has mode %s: others could put their files there; give it to root, with mode 0755",
			dir, owner, info.Mode().Perm())
	}
	return nil
}

// tryLock locks the file; errLocked means that another process holds the lock.
func tryLock(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = errLocked
			}
			return nil, errors.Join(err, file.Close())
		}
		mine, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if there, err := os.Stat(path); err != nil || !os.SameFile(mine, there) {
			_ = file.Close() // the previous agent has removed the file since
			continue
		}
		if err := errors.Join(file.Truncate(0), writeAt(file, strconv.Itoa(os.Getpid())+"\n")); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return file, nil
	}
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// release lets the next agent lock the node. The file is removed before the lock is released, so that no files of old namespaces stay.
func (l *nodeLock) release() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(os.Remove(l.file.Name()), l.file.Close())
}
