package wire

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	membarrierGlobal = 1 // MEMBARRIER_CMD_GLOBAL of linux/membarrier.h
	// graceWithout is how long to wait if the kernel has no such barrier (nohz_full): far longer than a packet is in the chains.
	graceWithout = 50 * time.Millisecond
	// GraceLook is the interval at which to check a grace period that has begun.
	GraceLook = 25 * time.Millisecond
)

// WaitForReaders returns when all packets that were being processed by the rules at the call have left them. The kernel processes packets
// under RCU, and this barrier waits for a grace period of RCU, which takes 5 to 20 ms.
func WaitForReaders() {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(graceWithout)
	}
}

// Grace reports when all packets that were being processed by the rules at some moment have left them. Several goroutines may use it, and
// none of them waits: other changes continue meanwhile.
type Grace struct {
	mu    sync.Mutex
	begun uint64 // number of tickets issued
	over  uint64 // the last ticket whose period is over
	waits bool   // run is active

	held <-chan struct{}
}

// Hold makes grace periods last until a channel is closed. For tests.
func (g *Grace) Hold(until <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = until
}

// Begin starts a grace period. Objects that may be removed after it must no longer be used by the kernel's newest rules.
func (g *Grace) Begin() (ticket uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun++
	if !g.waits {
		g.waits = true
		time.AfterFunc(0, g.run) // it ends within tens of milliseconds
	}
	return g.begun
}

// Over returns the last ticket whose grace period is over; all earlier ones are over too. A transaction must use one result throughout: an
// object that it removes may refer to objects that were marked for removal at the same time or later.
func (g *Grace) Over() (ticket uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over
}

// Wait waits until all periods that have begun are over. For tests.
func (g *Grace) Wait() {
	for last := g.Begin(); g.Over() < last; {
		WaitForReaders()
	}
}

// run waits until all periods are over.
func (g *Grace) run() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.over < g.begun {
		last, held := g.begun, g.held
		g.mu.Unlock()
		if held != nil {
			<-held
		}
		WaitForReaders()
		g.mu.Lock()
		g.over = last
	}
	g.waits = false
}
