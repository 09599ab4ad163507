package cniapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// listener is a unix socket that belongs to one agent at a time: a lock file beside it determines the owner.
type listener struct {
	*net.UnixListener
	path string
	self os.FileInfo // the socket file that this process made
	lock *os.File
	once sync.Once
}

// listen makes the socket. A socket that an agent left behind is replaced; a socket on which a process listens is not.
func listen(ctx context.Context, path string, takeOver time.Duration) (*listener, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("CNI socket %q: not an absolute path", path)
	}
	if err := prepareDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("CNI socket %s: %w", path, err)
	}
	lock, err := acquire(ctx, path+".lock", takeOver)
	if err != nil {
		return nil, fmt.Errorf("CNI socket %s: %w", path, err)
	}
	l := &listener{path: path, lock: lock}
	if err := l.bind(); err != nil {
		l.release()
		return nil, fmt.Errorf("CNI socket %s: %w", path, err)
	}
	return l, nil
}

// prepareDir creates the directory for root only. An existing directory keeps its mode, because it may be /run itself, but
// other users must not be able to replace our socket with theirs.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create its directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("directory %s is writable for others (mode %04o): chmod 0700 it or configure another socket",
			dir, info.Mode().Perm())
	}
	return nil
}

// acquire takes the lock file. An agent that is about to stop may still hold it.
func acquire(ctx context.Context, path string, timeout time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	giveUp := time.Now().Add(timeout)
	for {
		if err = tryLock(f); err == nil {
			return f, nil
		}
		if ctx.Err() != nil || time.Now().After(giveUp) {
			_ = f.Close()
			return nil, fmt.Errorf("another contiv-agent holds %s, stop it first: %w", path, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (l *listener) bind() error {
	if err := removeStale(l.path); err != nil {
		return err
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ln.SetUnlinkOnClose(false) // close unlinks the socket if it is still ours
	l.UnixListener = ln
	if l.self, err = os.Lstat(l.path); err == nil {
		err = os.Chmod(l.path, 0o600)
	}
	if err != nil {
		l.close()
		return err
	}
	return nil
}

// removeStale removes a socket on which nothing listens.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("there is a %s, not a socket, in its place: remove it or configure another path", info.Mode())
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return errors.New("another process listens on it: stop the other agent first")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("it exists, and the check whether it is stale failed: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}

// close stops listening and removes the socket, unless it has been replaced by another one.
func (l *listener) close() {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && l.self != nil && os.SameFile(now, l.self) {
			_ = os.Remove(l.path)
		}
		_ = l.Close()
	})
}

// release releases the socket for the next agent. The lock file stays: removing it would let two agents hold a lock.
func (l *listener) release() {
	if l.UnixListener != nil {
		l.close()
	}
	_ = l.lock.Close()
}
