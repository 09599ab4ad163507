package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/windows"
)

// nodeLockPath does not depend on --run-dir: a node has one Host Network Service.
func nodeLockPath() (string, error) {
	dir := os.Getenv("ProgramData")
	if dir == "" {
		dir = `C:\ProgramData`
	}
	return filepath.Join(dir, "contiv", "lock", "dataplane.lock"), nil
}

// privateACL gives access to a directory, and to everything in it, to the system and administrators only.
const privateACL = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

// privateDir makes a directory that only the system and administrators can open. Its sockets inherit the access rights: on Windows a client
// can connect only if it may write to the socket's file.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	sd, err := windows.SecurityDescriptorFromString(privateACL)
	if err != nil {
		return fmt.Errorf("access to %s: %w", dir, err)
	}
	dacl, _, err := sd.DACL()
	if err != nil {
		return fmt.Errorf("access to %s: %w", dir, err)
	}
	err = windows.SetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT,
		windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, dacl, nil)
	if err != nil {
		return fmt.Errorf("access to %s: %w; contiv-agent has to run as SYSTEM or as an administrator", dir, err)
	}
	return nil
}

// lockOffset is beyond the text of the file: other processes cannot read locked bytes, and they must read the process ID.
const lockOffset = 1 << 20

// tryLock locks the file; errLocked means that another process holds the lock.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	at := &windows.Overlapped{Offset: lockOffset}
	err = windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		err = errLocked
	}
	if err == nil {
		if err = file.Truncate(0); err == nil {
			_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// release lets the next agent lock the node. The file stays: Windows cannot remove an open file.
func (l *nodeLock) release() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
