package ipset

import "contiv.dev/vswitch/dataplane/linux/table"

// kernel is what Sets needs of the kernel. The tests have one that fails on purpose.
type kernel interface {
	// exchange carries out requests in order and returns the outcome of each (nil: done), or an error when it is not known
	// what became of them.
	exchange(reqs []request) ([]error, error)
	// headers hands over the head of every set.
	headers(each func(header)) error
	// members hands over the members of a set; errNoEntry when there is no such set.
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

// request is one thing to do with one set. Adding what is there already and removing what is not there succeed.
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
