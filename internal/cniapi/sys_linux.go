package cniapi

import (
	"net"
	"os"
	"syscall"
)

// peerUID returns the user of the process that connected.
func peerUID(conn *net.UnixConn) (uid int, known bool, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var cred *syscall.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err == nil {
		err = credErr
	}
	if err != nil {
		return 0, false, os.NewSyscallError("getsockopt SO_PEERCRED", err)
	}
	return int(cred.Uid), true, nil
}

func tryLock(f *os.File) error {
	return os.NewSyscallError("flock", syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
}
