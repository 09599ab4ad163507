package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const faultsHeading = "## Faults found, and their tests\n"

var (
	testName   = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	testsInDir = regexp.MustCompile("((?:`(?:Test|Fuzz)\\w+`(?:, )?)+) \\(([^)]+)\\)")
)

// TestSecurityTable checks that each fault that a review found has a row, that each row names tests, and that each test exists in the named
// folder.
func TestSecurityTable(t *testing.T) {
	text, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), faultsHeading)
	if !ok {
		t.Fatalf("security.md has no heading %q", faultsHeading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	numbers := map[string]bool{}
	for _, row := range faultRows(section) {
		numbers[row[0]] = true
		for _, fault := range faultsOf(row[2]) {
			t.Errorf("row %s (%s): %s", row[0], row[1], fault)
		}
	}
	for n := 1; n <= 12; n++ {
		if !numbers[fmt.Sprint(n)] {
			t.Errorf("fault %d of the review has no row", n)
		}
	}
}

// TestSecurityTableNotices checks that a cell without tests, a test that does not exist, one in the wrong folder, and one without a folder
// are reported.
func TestSecurityTableNotices(t *testing.T) {
	for cell, want := range map[string]int{
		"`TestSecurityTable`, `TestLinks` (docs)":              0,
		"`TestSecurityTable` (docs); `TestWalks` (docs/walks)": 0,
		"none yet":                 1,
		"`TestSecurityTab` (docs)": 1,
		"`TestSecurityTable`, `TestSecurity` (docs)": 1,
		"`TestSecurityTable` (docs/walks)":           1,
		"`TestSecurityTable` (nowhere)":              1,
		"`TestSecurityTable` (docs); `TestLinks`":    1,
	} {
		if faults := faultsOf(cell); len(faults) != want {
			t.Errorf("%s: %q, want %d", cell, faults, want)
		}
	}
}

// faultRows returns the three cells of each row below the table's head.
func faultRows(section string) (rows [][]string) {
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 3 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| #") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// faultsOf returns the errors in a cell that names tests, as "`TestA`, `TestB` (folder); `TestC` (folder)".
func faultsOf(cell string) (faults []string) {
	placed := map[string]bool{}
	for _, group := range testsInDir.FindAllStringSubmatch(cell, -1) {
		for _, name := range testName.FindAllStringSubmatch(group[1], -1) {
			placed[name[1]] = true
			if !hasTest(group[2], name[1]) {
				faults = append(faults, fmt.Sprintf("%s has no %s", group[2], name[1]))
			}
		}
	}
	names := testName.FindAllStringSubmatch(cell, -1)
	for _, name := range names {
		if !placed[name[1]] {
			faults = append(faults, name[1]+" has no folder")
		}
	}
	if len(names) == 0 {
		faults = append(faults, "no test")
	}
	return faults
}

func hasTest(folder, name string) bool {
	files, _ := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains("\n"+string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
