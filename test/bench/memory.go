package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"contiv.dev/vswitch/test/testbed/netns"
)

// memory returns the current and the peak memory of a process, in bytes.
func memory(p *netns.Process) (rss, peak float64) { return memoryOf(p.PID()) }

func memoryOf(pid int) (rss, peak float64) {
	data, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "status"))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f", &kb); n == 1 {
			rss = kb * 1024
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %f", &kb); n == 1 {
			peak = kb * 1024
		}
	}
	return rss, peak
}
