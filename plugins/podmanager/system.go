package podmanager

import (
	"os"
	"strings"
)

// netnsState is the state of a network namespace.
type netnsState int

const (
	netnsUnknown netnsState = iota // cannot be determined
	netnsSeen
	netnsGone // certainly does not exist
)

// system holds the functions and data of the operating system that podmanager uses.
type system struct {
	netns func(path string) (inode uint64, state netnsState)
	// ownNetns is the inode of the agent's own namespace; 0 if unknown.
	ownNetns uint64
	// bootID changes with each reboot; empty if unknown.
	bootID string
}

func realSystem() system {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // the file exists only on Linux
	own, _ := lookNetns("/proc/self/ns/net")
	return system{netns: lookNetns, ownNetns: own, bootID: strings.TrimSpace(string(id))}
}
