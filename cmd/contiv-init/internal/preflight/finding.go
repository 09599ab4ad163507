package preflight

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Finding is something that the node lacks.
type Finding struct {
	Error   bool   // false: a warning
	Subject string // hugepages, NIC, networks, MTU, contiv.conf, kernel, port, memory, CNI
	Problem string
	Fix     string
}

// String returns the finding as one line.
func (f Finding) String() string { return fmt.Sprintf("%s: %s; %s", f.Subject, f.Problem, f.Fix) }

// Failed reports whether there is an error among the findings.
func Failed(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Error })
}

// Print writes the findings in readable form.
func Print(w io.Writer, found []Finding) {
	if len(found) == 0 {
		fmt.Fprintln(w, "preflight: this node has everything that is needed")
	}
	for _, f := range found {
		kind := "warning"
		if f.Error {
			kind = "MISSING"
		}
		fmt.Fprintf(w, "%s  %-9s  %s\n         fix: %s\n", kind, f.Subject, f.Problem, f.Fix)
	}
}

// Summary returns the findings as one text, at most as long as an Event or a condition may be.
func Summary(found []Finding) string {
	var parts []string
	for _, f := range found {
		parts = append(parts, f.String())
	}
	text := strings.Join(parts, " | ")
	const limit = 1000 // the API server takes 1024 bytes
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + " …"
	}
	return text
}
