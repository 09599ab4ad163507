package table

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Format is the output format of answers.
type Format string

// The formats. Wide has all columns and does not cut cells; Name has names only, one on a line.
const (
	Text Format = "table"
	Wide Format = "wide"
	JSON Format = "json"
	YAML Format = "yaml"
	Name Format = "name"
)

// Formats returns the names of the formats.
func Formats() []string {
	return []string{string(Text), string(Wide), string(JSON), string(YAML), string(Name)}
}

// Parse parses the name of a format.
func Parse(text string) (Format, error) {
	if f := Format(text); slices.Contains(Formats(), text) {
		return f, nil
	}
	return "", fmt.Errorf("output format %q: use %s", text, strings.Join(Formats(), ", "))
}

// Structured reports whether the format is for scripts.
func (f Format) Structured() bool { return f == JSON || f == YAML }

// maxCell is the longest cell in characters, except for Wide.
const maxCell = 60

// Table holds columns for users. A column whose header begins with "+" is for Wide only.
type Table struct {
	Header []string
	Rows   [][]string
	// Whole lists columns, by their headers, whose cells are never cut.
	Whole []string
	// Color is set if the output is a terminal.
	Color bool
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write prints the value for scripts, or the table for users.
func Write(w io.Writer, f Format, value any, t Table) error {
	switch {
	case f.Structured():
		return Value(w, f, value)
	case f == Name:
		return t.names(w)
	}
	rows := [][]string{{}}
	var columns []int
	for i, name := range t.Header {
		if short, wide := strings.CutPrefix(name, "+"); !wide || f == Wide {
			columns = append(columns, i)
			rows[0] = append(rows[0], short)
		}
	}
	for _, row := range t.Rows {
		cells := make([]string, 0, len(columns))
		for _, i := range columns {
			cells = append(cells, t.cell(row, i, f))
		}
		rows = append(rows, cells)
	}
	_, err := io.WriteString(w, t.align(rows))
	return err
}

// cell returns a cell of a row, never empty and on one line.
func (t *Table) cell(row []string, i int, f Format) string {
	if i >= len(row) || row[i] == "" {
		return "-"
	}
	text := strings.Join(strings.Fields(row[i]), " ")
	if f == Wide || slices.Contains(t.Whole, t.Header[i]) || utf8.RuneCountInString(text) <= maxCell {
		return text
	}
	return string([]rune(text)[:maxCell-1]) + "…"
}

// align pads all columns but the last.
func (t *Table) align(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			if t.Color && n > 0 {
				b.WriteString(Paint(cell))
			} else {
				b.WriteString(cell)
			}
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]+2-utf8.RuneCountInString(cell)))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// names prints one name per row: NAMESPACE/NAME, NAME, or else the first column.
func (t *Table) names(w io.Writer) error {
	column := func(names ...string) int {
		for _, name := range names {
			if i := slices.Index(t.Header, name); i >= 0 {
				return i
			}
		}
		return -1
	}
	name, namespace := max(column("NAME", "NODE", "KEY", "OBJECT"), 0), column("NAMESPACE")
	var before string
	for _, row := range t.Rows {
		line := row[name]
		if namespace >= 0 && row[namespace] != "" {
			line = row[namespace] + "/" + line
		}
		if line == before {
			continue // a service has a row for each port
		}
		before = line
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// The marks and words that have a colour.
const (
	green, red, yellow, reset = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
)

// Paint colours a cell that shows whether something is healthy.
func Paint(cell string) string {
	word, _, _ := strings.Cut(cell, " ")
	switch strings.TrimSuffix(word, ":") {
	case "yes", "✓", "CONFIGURED", "ok":
		return green + cell + reset
	case "no", "✗", "FAILED", "failed":
		return red + cell + reset
	case "PENDING", "RETRYING", "!", "skipped":
		return yellow + cell + reset
	}
	return cell
}

// Value prints a value as JSON or YAML.
func Value(w io.Writer, f Format, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil && f == YAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if f == JSON {
		text = append(text, '\n')
	}
	_, err = w.Write(text)
	return err
}
