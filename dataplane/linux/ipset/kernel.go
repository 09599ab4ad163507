package ipset

import "contiv.dev/vswitch/dataplane/linux/table"

// kernel is the part of the kernel's interface that Sets uses. Tests have one that injects faults.
type kernel interface {
	// exchange executes requests in order and returns the result of each (nil: done), or an error if the results are unknown.
	exchange(reqs []request) ([]error, error)
	// headers calls each for the header of every set.
	headers(each func(header)) error
	// members calls each for the members of a set; it returns errNoEntry if the set does not exist.
	members(name string, each func(member)) error
	close() error
}

type op uint8

const (
	opCreate  op = 2
	opDestroy op = 3
	opFlush   op = 4
	opSwap    op = 6
	opAdd     op = 9
	opDel     op = 10
)

// request is one operation on one set. Adding an existing member and removing a missing one succeed.
type request struct {
	op       op
	name     string
	other    string // opSwap
	head     header // opCreate; head.family also for opAdd and opDel
	typ      table.SetType
	hashSize int
	members  []member // opAdd, opDel
}

// header describes a set in the kernel.
type header struct {
	name   string
	typ    string // "hash:ip", …
	family table.Family
	max    int
}
