package wire

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	membarrierGlobal = 1 // MEMBARRIER_CMD_GLOBAL of linux/membarrier.h
	// graceWithout is how long to wait where the kernel has no such barrier (nohz_full): far longer than a packet stays in a chain.
	graceWithout = 50 * time.Millisecond
	// GraceLook is when to look again for a grace period that has begun.
	GraceLook = 25 * time.Millisecond
)

// WaitForReaders returns when no packet is any more where it was in the rules when the call began: the kernel handles packets under RCU, and this
// barrier waits for a grace period of RCU, which takes 5 to 20 ms.
func WaitForReaders() {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(graceWithout)
	}
}

// Grace reports when the packets are through that were on their way through the rules at some moment. It may be used by several goroutines, and
// none of them waits: other changes go on meanwhile.
type Grace struct {
	mu    sync.Mutex
	begun uint64 // tickets
	over  uint64 // up to which
	waits bool   // a function of our own does

	held <-chan struct{}
}

// Hold makes grace periods last until a channel is closed, for tests.
func (g *Grace) Hold(until <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = until
}

// Begin begins a grace period. What may be removed after it is no longer in use by the kernel's newest rules.
func (g *Grace) Begin() (ticket uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun++
	if !g.waits {
		g.waits = true
		time.AfterFunc(0, g.run) // it ends by itself, within tens of milliseconds
	}
	return g.begun
}

// Over is the last ticket whose grace period, and so those of all before, is over. A transaction keeps to one answer: what goes may lead to what went
// to leave at the same time or later.
func (g *Grace) Over() (ticket uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over
}

// Wait waits until all that has begun is over, for tests.
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
