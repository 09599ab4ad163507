package podmanager

import (
	"os"
	"strings"
)

// netnsState is what is known of a network namespace.
type netnsState int

const (
	netnsUnknown netnsState = iota // cannot be determined
	netnsSeen
	netnsGone // certainly
)

// system is what podmanager asks of the operating system.
type system struct {
	netns func(path string) (inode uint64, state netnsState)
	// ownNetns is the inode of the agent's own; 0 if unknown.
	ownNetns uint64
	// bootID is another one after a reboot; empty if unknown.
	bootID string
}

func realSystem() system {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // absent elsewhere than on Linux
	own, _ := lookNetns("/proc/self/ns/net")
	return system{netns: lookNetns, ownNetns: own, bootID: strings.TrimSpace(string(id))}
}
