package lifecycle

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
)

// jobLabel is the label of a job's goroutines in profiles; goroutines that they start inherit it.
const jobLabel = "job"

// where returns the functions in which the goroutines of a job are, the innermost first, for the log.
func where(job string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	return framesOf(profile.String(), job)
}

// framesOf returns the functions of a job's goroutines from a text profile: the innermost four of each goroutine, without those of the
// runtime, for at most three goroutines.
func framesOf(profile, job string) string {
	const goroutines, depth = 3, 4
	label := fmt.Sprintf("%q:%q", jobLabel, job)
	var out []string
	for record := range strings.SplitSeq(profile, "\n\n") {
		if !strings.Contains(record, label) {
			continue
		}
		var frames []string
		for line := range strings.Lines(record) {
			fields := strings.Fields(line) // "#", address, function+offset, file:line
			if len(fields) < 4 || fields[0] != "#" || !strings.HasPrefix(fields[1], "0x") {
				continue
			}
			name, _, _ := strings.Cut(fields[2], "+0x")
			if !strings.HasPrefix(name, "runtime.") && !strings.HasPrefix(name, "internal/") {
				frames = append(frames, name[strings.LastIndexByte(name, '/')+1:])
			}
		}
		out = append(out, strings.Join(frames[:min(len(frames), depth)], " < "))
	}
	slices.Sort(out) // the order of a profile is random
	out = slices.Compact(out)
	return strings.Join(out[:min(len(out), goroutines)], "; ")
}
