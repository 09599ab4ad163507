package ipset

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Errno is an error of the kernel's ipset code: a system error number, or one of ipset's own (linux/netfilter/ipset/ip_set.h).
type Errno int

// The ipset errors that are handled here, or that an operator may see.
const (
	errProtocol     Errno = 4097
	errFindType     Errno = 4098
	errMaxSets      Errno = 4099
	errBusy         Errno = 4100
	errExistName2   Errno = 4101
	errTypeMismatch Errno = 4102
	errExist        Errno = 4103
	errInvalidCIDR  Errno = 4104
	errReferenced   Errno = 4108
	errHashFull     Errno = 4352
	errHashElem     Errno = 4353
	errNoEntry      Errno = Errno(unix.ENOENT)
)

// Error returns a description of the error.
func (e Errno) Error() string {
	switch e {
	case errProtocol:
		return "the kernel does not understand the message (ipset protocol)"
	case errFindType:
		return "the kernel does not have this type of set (load the ip_set_hash_* modules)"
	case errMaxSets:
		return "the kernel has reached its limit of sets; raise the module parameter ip_set.max_sets"
	case errBusy:
		return "the set is in use"
	case errExistName2:
		return "the second name is in use"
	case errTypeMismatch:
		return "the sets are of different types"
	case errExist:
		return "exists already, or does not exist"
	case errInvalidCIDR:
		return "prefix length not possible in this type of set"
	case errReferenced:
		return "the set is referred to"
	case errHashFull:
		return "the set is full"
	case errHashElem:
		return "address 0.0.0.0 is not possible in this type of set"
	}
	if e > 0 && e < 4096 {
		return unix.Errno(e).Error()
	}
	return "ipset error " + strconv.Itoa(int(e))
}

// Is reports whether the error is a system error number, for errors.Is.
func (e Errno) Is(target error) bool {
	errno, ok := target.(unix.Errno)
	return ok && Errno(errno) == e
}
