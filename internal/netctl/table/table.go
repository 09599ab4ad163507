package table

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// Format is how answers are printed.
type Format string

// The formats.
const (
	Text Format = "table"
	JSON Format = "json"
	YAML Format = "yaml"
)

// Formats lists them.
func Formats() []string { return []string{string(Text), string(JSON), string(YAML)} }

// Parse reads a format.
func Parse(text string) (Format, error) {
	switch f := Format(text); f {
	case Text, JSON, YAML:
		return f, nil
	}
	return "", fmt.Errorf("output format %q: use %s", text, strings.Join(Formats(), ", "))
}

// Table are columns for people.
type Table struct {
	Header []string
	Rows   [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write prints the value for scripts, or the table for people.
func Write(w io.Writer, f Format, value any, t Table) error {
	if f != Text {
		return Value(w, f, value)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.Header, "\t"))
	for _, row := range t.Rows {
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
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
