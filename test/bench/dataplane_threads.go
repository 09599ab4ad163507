package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// threadTimes is the processor time of threads, by the node and the name of the thread: the stand-in for vhost-net has its own threads in VPP's
// process.
type threadTimes map[string]time.Duration

// bothEnds is the label of the threads of this process, which sends and receives.
const bothEnds = "both ends of the connection"

// threads returns the times of this process and of the nodes' VPPs.
func (w *loadWorld) threads() threadTimes {
	times := threadTimes{}
	times.add(os.Getpid(), func(string) string { return bothEnds })
	for _, n := range w.Nodes {
		if n.VPP != nil {
			times.add(n.VPP.PID(), func(name string) string { return n.Name + " " + name })
		}
	}
	return times
}

// add adds the threads of a process; threads that end in the meantime are left out.
func (t threadTimes) add(pid int, label func(name string) string) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the pattern is valid
	for _, task := range tasks {
		name, err := os.ReadFile(filepath.Join(task, "comm"))
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(task, "schedstat")) // ns on a processor, ns waiting, time slices
		if err != nil {
			continue
		}
		run, _, _ := strings.Cut(string(stat), " ")
		if ns, err := strconv.ParseInt(run, 10, 64); err == nil {
			t[label(strings.TrimSpace(string(name)))] += time.Duration(ns)
		}
	}
}

// since returns a line for each thread that has run since before.
func (t threadTimes) since(before threadTimes) string {
	spent, sum := threadTimes{}, time.Duration(0)
	for name, d := range t {
		if d -= before[name]; d > 0 {
			spent[name] = d
			sum += d
		}
	}
	names := slices.SortedFunc(maps.Keys(spent), func(a, b string) int { return int(spent[b] - spent[a]) })
	var b strings.Builder
	for _, name := range names {
		if share := 100 * spent[name].Seconds() / sum.Seconds(); share >= 1 {
			fmt.Fprintf(&b, "      %-36s %5.1f %% of %.2f s of processor time\n", name, share, sum.Seconds())
		}
	}
	return b.String()
}
