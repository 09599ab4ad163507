package configref

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller"
)

// Sources are the inputs of the page.
type Sources struct {
	// Help is the text of --help by program, with the commands that have their own flags as "contiv-init preflight".
	Help map[string]string
	// Values and Schema are the chart's values.yaml and values.schema.json.
	Values, Schema []byte
}

// Programs returns the programs on the page, in order.
func Programs() []string {
	return []string{"contiv-agent", "contiv-ksr", "contiv-vpp-supervisor", "contiv-init preflight", "contiv-init cni", "contiv-netctl"}
}

const intro = `# Configuration

Generated from the code by ` + "`make docs`" + `; do not edit. A test fails when this page and the code differ.

| what | where |
|---|---|
| ` + "`contiv.conf`" + ` | options of the cluster; the chart makes the file from ` + "`contivConf`" + ` |
| ` + "`controller.conf`" + ` | options of the event loop; from ` + "`controllerConf`" + ` |
| flags | of single programs; ` + "`agent.extraArgs`" + ` and ` + "`vpp.extraArgs`" + ` add some |
| values | of the Helm chart |

The agent rejects unknown options, and names the line and the option that was probably meant. All files are YAML or JSON.
[An example with every option](../plugins/contivconf/testdata/contiv.conf).
`

// Page returns the document.
func Page(s Sources) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(intro)
	b.WriteString("\n## contiv.conf\n\n" + optionHead)
	writeOptions(&b, "", reflect.TypeFor[contivconf.File](), reflect.Value{})
	b.WriteString("\n## controller.conf\n\nDurations are `1m30s`, or numbers of nanoseconds.\n\n" + optionHead)
	writeOptions(&b, "", reflect.TypeFor[controller.Config](), reflect.ValueOf(controller.DefaultConfig()))
	b.WriteString("\n## Flags\n\nEach flag of `contiv-agent` and `contiv-ksr` can also be set by the environment variable `CONTIV_<FLAG>`: " +
		"`CONTIV_ETCD_ENDPOINTS` for `--etcd-endpoints`. Variables that stand for no flag are rejected.\n")
	for _, program := range Programs() {
		if err := writeFlags(&b, program, s.Help[program]); err != nil {
			return nil, err
		}
	}
	b.WriteString("\n## Values of the chart\n\n[values.yaml](../k8s/contiv-vpp/values.yaml) has the same with comments. `contivConf` and " +
		"`controllerConf` take the options above.\n\n| value | default | description |\n|---|---|---|\n")
	if err := writeValues(&b, s); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

const optionHead = "| option | type | default | description |\n|---|---|---|---|\n"

// writeOptions writes a row for each option of a struct and of its nested structs. defaults may be the zero Value.
func writeOptions(b *bytes.Buffer, prefix string, t reflect.Type, defaults reflect.Value) {
	for i := range t.NumField() {
		f := t.Field(i)
		var def reflect.Value
		if defaults.IsValid() {
			def = defaults.Field(i)
		}
		if f.Anonymous {
			writeOptions(b, prefix, f.Type, def)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		text := f.Tag.Get("default")
		if def.IsValid() {
			text = defaultOf(def.Interface())
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			inner = inner.Elem()
		}
		kind := typeName(f.Type)
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", prefix+name, kind, code(text), cell(f.Tag.Get("doc")))
		if inner.Kind() == reflect.Struct && name != "srv6" { // no option of srv6 is supported
			if strings.HasPrefix(kind, "list") {
				name += "[]"
			}
			writeOptions(b, prefix+name+".", inner, reflect.Value{})
		}
	}
}

// defaultOf returns a default as it is written in the file: durations as "1m30s", without parts that are zero.
func defaultOf(v any) string {
	if m, ok := v.(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			short := string(text)
			for _, zero := range []string{"0s", "0m"} {
				if rest := strings.TrimSuffix(short, zero); strings.HasSuffix(rest, "h") || strings.HasSuffix(rest, "m") {
					short = rest
				}
			}
			return short
		}
	}
	return fmt.Sprint(v)
}

func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[controller.Duration](), reflect.TypeFor[controller.Minutes]():
		return "duration"
	case reflect.TypeFor[*contivconf.Lengths]():
		return "number, or numbers"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Bool:
		return "true, false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "list"
	case reflect.Struct:
		return "section"
	}
	return "number"
}

// flagLine matches a line of cobra's usage: name, type, text.
var flagLine = regexp.MustCompile(`(?m)^ +(?:-([A-Za-z]), )?--([a-z][a-z0-9-]*)(?: ([a-zA-Z0-9]+))?   +(.*)$`)

// defaultText matches the default at the end of a flag's text.
var defaultText = regexp.MustCompile(`^(.*) \(default (.+)\)$`)

func writeFlags(b *bytes.Buffer, program, help string) error {
	found := flagLine.FindAllStringSubmatch(help, -1)
	if len(found) < 2 {
		return fmt.Errorf("%s --help has no flags:\n%s", program, help)
	}
	fmt.Fprintf(b, "\n### %s\n\n| flag | default | description |\n|---|---|---|\n", program)
	for _, m := range found {
		if m[2] == "help" || m[2] == "version" {
			continue
		}
		text, def := m[4], ""
		if d := defaultText.FindStringSubmatch(text); d != nil && !strings.Contains(d[2], "(") {
			text, def = d[1], strings.Trim(d[2], `"`)
		}
		fmt.Fprintf(b, "| `--%s` | %s | %s |\n", m[2], code(def), cell(text))
	}
	return nil
}

// writeValues writes a row for each value of values.yaml.
func writeValues(b *bytes.Buffer, s Sources) error {
	var values yaml.Node
	if err := yaml.Unmarshal(s.Values, &values); err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	var schema map[string]any
	if err := json.Unmarshal(s.Schema, &schema); err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	return writeNode(b, "", values.Content[0], schema)
}

func writeNode(b *bytes.Buffer, prefix string, n *yaml.Node, schema map[string]any) error {
	properties, _ := schema["properties"].(map[string]any)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, n.Content[i+1]
		property, _ := properties[name].(map[string]any)
		doc, _ := property["description"].(string)
		path := prefix + name
		inside, _ := property["properties"].(map[string]any)
		if path == "contivConf" || path == "controllerConf" || value.Kind != yaml.MappingNode || len(value.Content) == 0 || inside == nil {
			def, err := flow(value)
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", path, code(def), cell(doc))
			continue
		}
		fmt.Fprintf(b, "| `%s` | | %s |\n", path, cell(doc))
		if err := writeNode(b, path+".", value, property); err != nil {
			return err
		}
	}
	return nil
}

// flow returns a value on one line, without comments.
func flow(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode {
		return n.Value, nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// code formats a default as a code span.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", "\\|") + "`"
}

// cell escapes text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
