package table

import (
	"bytes"
	"strings"
	"testing"
)

// example returns a table like that of the command nodes.
func example() Table {
	t := Table{Header: []string{"ID", "NAME", "READY", "+STARTED"}}
	t.Add("1", "worker-1", "yes", "today")
	t.Add("2", "w2", "no: "+strings.Repeat("the data path is broken; ", 5), "")
	return t
}

func TestFormats(t *testing.T) {
	print := func(f Format) string {
		var b bytes.Buffer
		if err := Write(&b, f, []int{1}, example()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for f, want := range map[Format]string{Name: "worker-1\nw2\n", JSON: "[\n  1\n]\n", YAML: "- 1\n"} {
		if got := print(f); got != want {
			t.Errorf("%s: %q, want %q", f, got, want)
		}
	}
	text := strings.Split(print(Text), "\n")
	if text[0] != "ID  NAME      READY" || text[1] != "1   worker-1  yes" || len([]rune(text[2])) != 14+maxCell || !strings.HasSuffix(text[2], "…") {
		t.Errorf("table: %q", text)
	}
	wide := strings.Split(print(Wide), "\n")
	if !strings.HasSuffix(wide[0], " STARTED") || !strings.HasSuffix(wide[2], "the data path is broken;  -") {
		t.Errorf("wide: %q", wide)
	}
	if _, err := Parse("xml"); err == nil || !strings.Contains(err.Error(), "table, wide, json, yaml, name") {
		t.Errorf("an unknown format: %v", err)
	}
}

// TestNames: a name includes its namespace, and is printed once.
func TestNames(t *testing.T) {
	tab := Table{Header: []string{"NAMESPACE", "NAME", "PORT"}}
	tab.Add("default", "web", "80")
	tab.Add("default", "web", "443")
	tab.Add("kube-system", "dns", "53")
	var b bytes.Buffer
	if err := Write(&b, Name, nil, tab); err != nil || b.String() != "default/web\nkube-system/dns\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// TestColor: only cells that show whether something is healthy have a colour, only if colours are enabled, and columns stay aligned.
func TestColor(t *testing.T) {
	tab := Table{Header: []string{"READY", "NAME"}, Color: true}
	tab.Add("yes", "a")
	tab.Add("no", "b")
	var b bytes.Buffer
	if err := Write(&b, Text, nil, tab); err != nil {
		t.Fatal(err)
	}
	if want := "READY  NAME\n" + green + "yes" + reset + "    a\n" + red + "no" + reset + "     b\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	tab.Color = false
	b.Reset()
	if err := Write(&b, Text, nil, tab); err != nil || strings.Contains(b.String(), "\x1b") {
		t.Errorf("colour where there is no terminal: %q %v", b.String(), err)
	}
}

// TestOneLine: a value of several lines is one row.
func TestOneLine(t *testing.T) {
	tab := Table{Header: []string{"KEY", "VALUE"}, Whole: []string{"VALUE"}}
	tab.Add("k", "{\n  \"a\": 1,\n  \"b\": \""+strings.Repeat("x", 100)+"\"\n}")
	var b bytes.Buffer
	if err := Write(&b, Text, nil, tab); err != nil || strings.Count(b.String(), "\n") != 2 || strings.Contains(b.String(), "…") {
		t.Errorf("%q %v", b.String(), err)
	}
}
