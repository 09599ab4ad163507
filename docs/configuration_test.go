package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"contiv.dev/vswitch/hack/docs/configref"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
)

// TestConfigurationReference checks that docs/configuration.md is the output of `make docs`.
func TestConfigurationReference(t *testing.T) {
	dir := builtPrograms(t)
	s := configref.Sources{Help: map[string]string{}}
	for _, command := range configref.Programs() {
		words := strings.Fields(command)
		cmd := exec.Command(filepath.Join(dir, words[0]), append(words[1:], "--help")...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s --help: %v\n%s", command, err, out)
		}
		s.Help[command] = string(out)
	}
	var err error
	if s.Values, err = os.ReadFile("../k8s/contiv-vpp/values.yaml"); err != nil {
		t.Fatal(err)
	}
	if s.Schema, err = os.ReadFile("../k8s/contiv-vpp/values.schema.json"); err != nil {
		t.Fatal(err)
	}
	want, err := configref.Page(s)
	if err != nil {
		t.Fatal(err)
	}
	have := documents(t)["docs/configuration.md"]
	if have == string(want) {
		return
	}
	a, b := strings.Split(have, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("docs/configuration.md is out of date: run make docs. Line %d is\n%s\nand should be\n%s", i+1, a[i], b[i])
		}
	}
	t.Fatal("docs/configuration.md is out of date: run make docs")
}

// TestDefaults checks that the defaults on the page are those of the code: a contiv.conf that sets a default gives the same
// result as one that does not.
func TestDefaults(t *testing.T) {
	env := contivconf.Env{NodeName: "node-1"}
	want := contivconf.Default(env)
	checked := 0
	var walk func(t *testing.T, prefix string, typ reflect.Type)
	walk = func(t *testing.T, prefix string, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inner := f.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			switch {
			case f.Anonymous:
				walk(t, prefix, f.Type)
				continue
			case f.Tag.Get("doc") == "":
				t.Errorf("%s.%s has no tag doc", typ.Name(), f.Name)
			case inner.Kind() == reflect.Struct && name == "ipamConfig":
				walk(t, name, inner)
			}
			def := f.Tag.Get("default")
			if def == "" || prefix == "" && name == "mtuSize" { // for which the configuration also records that it was not set
				continue
			}
			text := fmt.Sprintf("%s: %s", name, def)
			if prefix != "" {
				text = fmt.Sprintf("%s: {%s}", prefix, text)
			}
			got, err := conffile.Load([]byte(text), env)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("contiv.conf with %q is not the default configuration (%v)", text, err)
			}
			checked++
		}
	}
	walk(t, "", reflect.TypeFor[contivconf.File]())
	if checked < 15 {
		t.Errorf("only %d defaults were checked", checked)
	}
}
