package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manDir is the directory in which `make man` wants the manual pages. Only this test imports the library that makes them, so the product does
// not contain it.
var manDir = flag.String("man", "", "directory for the manual pages")

// TestManPages makes the manual pages of all commands: each names the command and its flags.
func TestManPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root := newCommand()
	root.DisableAutoGenTag = true
	date := time.Unix(0, 0).UTC() // the same source gives the same pages
	header := &doc.GenManHeader{Title: "CONTIV-NETCTL", Section: "1", Source: "Contiv", Manual: "Contiv", Date: &date}
	if err := doc.GenManTree(root, header, dir); err != nil {
		t.Fatal(err)
	}
	pages := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c != root {
			return
		}
		pages++
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(page), c.Short) || !strings.Contains(string(page), "OPTIONS") {
			t.Errorf("%s: %v, or it lacks %q or the flags", name, err, c.Short)
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(root)
	if pages < 15 {
		t.Errorf("%d pages", pages)
	}
}
