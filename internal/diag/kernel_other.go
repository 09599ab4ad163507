//go:build !linux

package diag

import (
	"errors"
	"net/netip"
	"os/exec"
)

// errNoKernel is the error of requests about Linux' network stack.
var errNoKernel = errors.New("this node does not run Linux: query HNS on the node, with hnsdiag list all and Get-HnsNetwork")

func readKernel() (*Kernel, error) { return nil, errNoKernel }

func way(where string, _, _ netip.Addr, _ string) []Fact {
	return []Fact{{Where: where, What: "kernel", Text: errNoKernel.Error()}}
}

func kernelDrops() ([]DropCounter, error) { return nil, errNoKernel }

func deviceDrops() map[string]uint64 { return nil }

func endWithAgent(*exec.Cmd) {}
