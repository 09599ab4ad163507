package links

import (
	"errors"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/internal/nsdo"
)

// errForeign reports a conflict with an object that is not ours. A retry does not help.
var errForeign = errors.New("not ours")

// errNoLink reports that a link does not exist at present.
var errNoLink = errors.New("no such link")

// errTorn reports that a listing is not reliable.
var errTorn = errors.New("the kernel's state changed while it was being listed")

// podOnly marks the error of an operation in a pod's namespace, which is given by its path; empty is the agent's own. See scheduler.PodOnly. A lack of
// resources or of permissions (the agent lacks a capability, /proc/sys is read-only) concerns the whole node. Errors of a namespace that is gone are
// not retried.
func podOnly(path string, err error) error {
	switch {
	case path == "" || lacksResources(err) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS):
		return err
	case errors.Is(err, nsdo.ErrGone):
		return scheduler.PodGone(err)
	}
	return scheduler.PodOnly(err)
}

// lacksResources reports whether err is a lack of memory or of descriptors.
func lacksResources(err error) bool {
	for _, e := range []error{unix.ENOMEM, unix.ENOBUFS, unix.EMFILE, unix.ENFILE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// retriable reports whether an operation that failed with err may succeed later without a change of configuration. The scheduler also retries all
// others in the namespace of a pod that exists, because the pod can remove their cause.
func retriable(err error) bool {
	for _, fatal := range []error{nsdo.ErrGone, errForeign, unix.EINVAL, unix.EOPNOTSUPP, unix.EPERM, unix.ERANGE,
		unix.EADDRNOTAVAIL, unix.EROFS, unix.EAFNOSUPPORT} {
		if errors.Is(err, fatal) {
			return false
		}
	}
	return true
}

// gone reports whether err means that the object to delete does not exist, which is the result that the delete requested.
func gone(err error) bool {
	for _, e := range []error{nsdo.ErrGone, errNoLink, unix.ENODEV, unix.ENXIO, unix.ESRCH, unix.ENOENT, unix.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// unlessGone returns err, or nil if err means that the object to delete does not exist.
func unlessGone(err error) error {
	if err == nil || gone(err) {
		return nil
	}
	return err
}
