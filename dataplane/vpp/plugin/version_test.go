package plugin_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

var writeMessages = flag.Bool("messages", false, "write testdata/messages for a new version of contiv.api")

// TestMessagesOfVersion checks that a version of the API always has the same messages: agents and VPP are upgraded separately, and an agent
// decides by the version whether it may use the plugin.
func TestMessagesOfVersion(t *testing.T) {
	source, err := os.ReadFile("contiv.api")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^option version = "([0-9]+\.[0-9]+\.[0-9]+)";$`).FindSubmatch(source)
	if found == nil || string(found[1]) != contiv.APIVersion {
		t.Fatalf("contiv.api has version %q, its Go binding %s; run gen.sh", found, contiv.APIVersion)
	}
	var now []string
	for _, m := range contiv.AllMessages() {
		now = append(now, m.GetMessageName()+"_"+m.GetCrcString())
	}
	slices.Sort(now)
	file := filepath.Join("testdata", "messages", contiv.APIVersion+".txt")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && *writeMessages {
		data, err = []byte(strings.Join(now, "\n")+"\n"), nil
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Fatalf("no messages of version %s; run this test with -messages: %v", contiv.APIVersion, err)
	}
	recorded := strings.Fields(string(data))
	for _, m := range now {
		if !slices.Contains(recorded, m) {
			t.Errorf("%s is not a message of version %s; change option version in contiv.api, run gen.sh, then this test with -messages", m, contiv.APIVersion)
		}
	}
	for _, m := range recorded {
		if !slices.Contains(now, m) {
			t.Errorf("version %s had %s; change option version in contiv.api, run gen.sh, then this test with -messages", contiv.APIVersion, m)
		}
	}
}
