package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// report prints a line every minute.
func (s *soak) report(ctx context.Context) {
	for minute := 1; s.sleep(ctx, time.Until(s.begin.Add(time.Duration(minute)*time.Minute))); minute++ {
		fmt.Fprintf(s.out, "minute %d: %s\n", minute, s.line())
	}
}

func (s *soak) line() string {
	bytes, longest, _ := s.progress()
	kills, _, _ := s.kills.figures()
	return fmt.Sprintf("%s in %d streams, longest pause %s; %s; %d pods added and deleted; %d service changes; %d agents killed; %s; "+
		"%d faults; load %s", gigabytes(bytes), len(s.streams), longest, &s.connections, s.churn.added.Load(),
		s.services.changes.Load(), kills, &s.memory, s.faults.count(), loadAverage())
}

// summary prints the table at the end.
func (s *soak) summary() {
	bytes, longest, which := s.progress()
	n, middle, most := s.kills.figures()
	fmt.Fprintf(s.out, "\nsoak: %s, %s\n", s.opts.dataplane, time.Since(s.begin).Round(time.Second))
	rows := [][2]string{
		{"bytes, all checked", gigabytes(bytes)},
		{"longest pause of a stream", fmt.Sprintf("%s %s (bursts come every 2s)", longest, which)},
		{"short connections", s.connections.String()},
		{"pods added and deleted", fmt.Sprintf("%d (%d times ADD or DEL was retried)", s.churn.added.Load(), s.churn.retried.Load())},
		{"service changes", fmt.Sprint(s.services.changes.Load())},
		{"agents killed", fmt.Sprintf("%d, ready after %s (p50), %s at most", n, middle.Round(time.Millisecond), most.Round(time.Millisecond))},
	}
	for _, name := range s.memory.names {
		values := s.memory.series[name]
		first, last, _ := evaluate(values[len(values)/3:], 0)
		unit, by := " MB", 1e6
		if strings.HasPrefix(name, "NAT") {
			unit, by = "", 1
		}
		rows = append(rows, [2]string{name, fmt.Sprintf("%.1f%s, then %.1f%s", first/by, unit, last/by, unit)})
	}
	rows = append(rows, [2]string{"faults", fmt.Sprint(s.faults.count())})
	for _, r := range rows {
		fmt.Fprintf(s.out, "  %-28s %s\n", r[0], r[1])
	}
	for _, f := range s.streams {
		f.mu.Lock()
		pause := time.Duration(f.longest) * checkEvery
		f.mu.Unlock()
		fmt.Fprintf(s.out, "    %-28s %-28s %s, longest pause %s\n", f.name, f.to, gigabytes(f.bytes()), pause)
	}
}

// loadAverage returns the load average of the machine.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) == 0 {
		return "unknown"
	}
	return fields[0]
}
