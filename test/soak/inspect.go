package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// inspections is how many times a run records the state of the nodes: at the first faults.
const inspections = 3

// inspect writes the state that VPP and the agents report into a file, to help find the cause of a fault.
func (s *soak) inspect() {
	s.inspected.Lock()
	defer s.inspected.Unlock()
	if s.inspectionsDone++; s.inspectionsDone > inspections {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s after the start\n%s\n", time.Since(s.begin), s.line())
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "\n== %s: end of the agent's log\n%s\n", n.Name, n.LogTail(30))
		if n.VPP == nil {
			continue
		}
		for _, command := range []string{
			"show interface", "show errors", "show tap", "show nat44 summary", "show runtime", "show interface rx-placement",
			"show logging", "show buffers", "show ip fib table 1",
		} {
			out, err := n.VPP.CLI(command)
			fmt.Fprintf(&b, "\n== %s: %s (%v)\n%s\n", n.Name, command, err, out)
		}
		fmt.Fprintf(&b, "\n== %s: threads\n%s", n.Name, threads(n.VPP.PID()))
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d-%d.txt", s.opts.name, os.Getpid(), s.inspectionsDone))
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		path = err.Error()
	}
	fmt.Fprintln(s.out, "      the state of the nodes is in", path)
}

// threads returns the threads of a process: name, state, and where in the kernel they wait.
func threads(pid int) string {
	var b strings.Builder
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the pattern is valid
	for _, task := range tasks {
		var parts [3]string
		for i, file := range []string{"comm", "stat", "wchan"} {
			data, _ := os.ReadFile(filepath.Join(task, file)) // the thread may have ended
			parts[i] = strings.TrimSpace(string(data))
		}
		state := strings.TrimSpace(parts[1][strings.LastIndexByte(parts[1], ')')+1:])
		fmt.Fprintf(&b, "%s %s %.1s %s\n", filepath.Base(task), parts[0], state, parts[2])
	}
	return b.String()
}
