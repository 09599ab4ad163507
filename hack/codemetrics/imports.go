package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

const module = "contiv.dev/vswitch"

type pkg struct {
	ImportPath string
	Name       string
	Imports    []string
	GoFiles    []string
}

// importRows measures how many packages of the module a package imports, and which parts (top-level folders, for dataplane,
// plugins and internal one level more) import each other in both directions.
func importRows(ctx context.Context) ([]row, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Name,Imports,GoFiles", module+"/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var counts []int
	without, most := 0, pkg{}
	arrows := map[[2]string]int{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		p.Imports = slices.DeleteFunc(p.Imports, func(i string) bool { return !strings.HasPrefix(i, module+"/") })
		counts = append(counts, len(p.Imports))
		if len(p.Imports) > len(most.Imports) {
			most = p
		}
		if len(p.GoFiles) > 0 && p.Name != "main" && !slices.Contains(p.GoFiles, "doc.go") {
			without++
		}
		for _, i := range p.Imports {
			arrows[[2]string{part(p.ImportPath), part(i)}]++
		}
	}
	return []row{
		{"packages", fmt.Sprint(len(counts)), ""},
		{"in-module imports median/p95/max", fmt.Sprintf("%s (%s)", spread(counts), strings.TrimPrefix(most.ImportPath, module+"/")), "p95 6"},
		{"parts that import each other", both(arrows), "none"},
		{"packages without doc.go (commands aside)", fmt.Sprint(without), "generated ones only"},
	}, nil
}

// part returns the part of the code to which a package belongs.
func part(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, module+"/"), "/")
	depth := 1
	if parts[0] == "dataplane" || parts[0] == "plugins" || parts[0] == "internal" {
		depth = 2
	}
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

// both lists the pairs of parts that import each other.
func both(arrows map[[2]string]int) string {
	var pairs []string
	for a := range arrows {
		if back := [2]string{a[1], a[0]}; a[0] < a[1] && arrows[back] > 0 {
			pairs = append(pairs, fmt.Sprintf("%s and %s", a[0], a[1]))
		}
	}
	if len(pairs) == 0 {
		return "none"
	}
	slices.Sort(pairs)
	return fmt.Sprintf("%d: %s", len(pairs), strings.Join(pairs, "; "))
}
