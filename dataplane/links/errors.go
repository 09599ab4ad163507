package links

import (
	"errors"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// errForeign says that an object which is not ours is in the way. Retrying does not help.
var errForeign = errors.New("not ours")

// errNoLink says that a link does not exist at present.
var errNoLink = errors.New("no such link")

// errTorn says that a listing cannot be relied on.
var errTorn = errors.New("the kernel's state changed while it was being listed")

// retriable reports whether an operation that failed with err may succeed later without a change of configuration.
func retriable(err error) bool {
	for _, fatal := range []error{nsdo.ErrGone, errForeign, unix.EINVAL, unix.EOPNOTSUPP, unix.EPERM, unix.ERANGE,
		unix.EADDRNOTAVAIL, unix.EROFS, unix.EAFNOSUPPORT} {
		if errors.Is(err, fatal) {
			return false
		}
	}
	return true
}

// gone says that the object of a delete is not there, which is what the delete wanted.
func gone(err error) bool {
	for _, e := range []error{nsdo.ErrGone, errNoLink, unix.ENODEV, unix.ENXIO, unix.ESRCH, unix.ENOENT, unix.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// unlessGone is err, or nil when err says that there is nothing to delete.
func unlessGone(err error) error {
	if err == nil || gone(err) {
		return nil
	}
	return err
}
