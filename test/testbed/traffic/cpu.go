package traffic

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc (USER_HZ), the same on all architectures that Go supports.
const tick = 10 * time.Millisecond

// CPU returns the processor time that this process, the kernel's own threads for packets (ksoftirqd) and the given processes
// have used so far. The kernel accounts packet processing to the process that it interrupts, which mostly is one of these.
func CPU(pids ...int) (time.Duration, error) {
	pids = append([]int{os.Getpid()}, pids...)
	var sum time.Duration
	for _, pid := range append(pids, softirqThreads()...) {
		d, err := processTime(pid)
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

func softirqThreads() (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/comm") // the pattern is valid
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(comm), "ksoftirqd/") {
			continue // other threads, and processes that have ended
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processTime returns the user and system time of all threads of a process.
func processTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	// The name, in brackets, may contain spaces.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const utime, stime = 11, 12
	if len(fields) <= stime {
		return 0, fmt.Errorf("processor time of %d: %q", pid, stat)
	}
	var sum time.Duration
	for _, field := range fields[utime : stime+1] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time of %d: %w", pid, err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}
