package wire

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	membarrierGlobal = 1 // MEMBARRIER_CMD_GLOBAL of linux/membarrier.h
	// graceWithout is how long to wait where the kernel has no such barrier (nohz_full): far longer than a packet stays in a chain.
	graceWithout = 50 * time.Millisecond
)

// WaitForReaders returns when no packet is any more where it was in the rules when the call began: the kernel handles packets under RCU, and this
// barrier waits for a grace period of RCU, which takes 5 to 20 ms.
func WaitForReaders() {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(graceWithout)
	}
}
