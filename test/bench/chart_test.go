package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPlotsDir checks that the directory of the pictures is not a file that make build writes, and that an error in creating it ends the program
// before it measures.
func TestPlotsDir(t *testing.T) {
	for _, parent := range []string{"../../cmd", "../../test"} {
		if fi, err := os.Stat(filepath.Join(parent, filepath.Base(plotsDir))); err == nil {
			t.Errorf("make build writes %s to bin, where %s is to be a directory", fi.Name(), plotsDir)
		}
	}
	file := filepath.Join(t.TempDir(), "bench")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	e := &env{plots: file, bin: t.TempDir()}
	if err := run(t.Context(), e, "none"); err == nil || !strings.Contains(err.Error(), "-plots") || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}

// TestChart checks that a benchmark with results has a picture: valid XML, with each name, each figure, and bars in proportion.
func TestChart(t *testing.T) {
	e := &env{plots: t.TempDir()}
	e.ratio("adding 10 000 routes", milliseconds("contiv & co", 20*time.Millisecond), milliseconds("<ip -batch>", 80*time.Millisecond))
	tab := &table{Reference: "linux"}
	for _, v := range []float64{4, 6, 5} {
		tab.add("linux", "one stream", "Gb/s", v)
	}
	e.recorded = append(e.recorded, charted(tab)...)
	b := bench{name: "routes", what: "routes < 10 000"}
	if err := e.draw(b); err != nil {
		t.Fatal(err)
	}
	if e.recorded != nil {
		t.Error("the next benchmark would get these bars, too")
	}
	data, err := os.ReadFile(filepath.Join(e.plots, "bench-routes.svg"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, text)
		}
	}
	for _, want := range []string{"contiv &amp; co", "&lt;ip -batch&gt;", ">20.0<", ">80.0<", `width="130.0"`, `width="520.0"`, "one stream, Gb/s", ">5.00<",
		`M646.7 `, "load average"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %q:\n%s", want, text)
		}
	}
	if err := e.draw(b); err != nil {
		t.Errorf("nothing to draw: %v", err)
	}
}
