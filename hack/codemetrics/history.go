package main

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"strings"
)

// historyRows measures how many parts of the code the newest commits change. Commits that change no
// Go file are left out.
func historyRows(ctx context.Context, commits int) ([]row, error) {
	out, err := exec.CommandContext(ctx, "git", "log", "--no-merges", "--name-only", "--format=commit %h", fmt.Sprintf("-%d", commits)).Output()
	if err != nil {
		return nil, fmt.Errorf("git log: %w", err)
	}
	var folders []int
	code, tested := 0, 0
	for _, c := range strings.Split(string(out), "commit ")[1:] {
		touched, test := map[string]bool{}, false
		for name := range strings.Lines(c) {
			if name = strings.TrimSpace(name); strings.HasSuffix(name, ".go") {
				touched[path.Dir(name)] = true
				test = test || isTest(name)
			}
		}
		if len(touched) == 0 {
			continue
		}
		code++
		folders = append(folders, len(touched))
		if test {
			tested++
		}
	}
	if code == 0 {
		return nil, nil
	}
	return []row{
		{fmt.Sprintf("packages touched per code commit, median/p95/max of %d", code), spread(folders), "p95 3"},
		{"code commits that touch tests", fmt.Sprintf("%d %%", 100*tested/code), ""},
	}, nil
}
