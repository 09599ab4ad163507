package conffile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"contiv.dev/vswitch/internal/didyoumean"
	"contiv.dev/vswitch/plugins/controller"
)

// maxSize is far above any real controller.conf.
const maxSize = 1 << 20

// LoadFile reads the file at path, applies its options over the defaults, and validates the result.
func LoadFile(path string) (controller.Config, error) {
	data, err := readFile(path)
	if err != nil {
		return controller.Config{}, fmt.Errorf("controller.conf: %w", err)
	}
	c, err := Load(data)
	if err != nil {
		return controller.Config{}, fmt.Errorf("%s is not valid:\n%w", path, err)
	}
	return c, nil
}

// readFile reads path only if it is a regular file of at most maxSize: other files may be endless, or may block the reader.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file (%s); give the path of the configuration", path, info.Mode())
	case info.Size() > maxSize:
		return nil, fmt.Errorf("%s is too large for a configuration: the limit is %d bytes", path, maxSize)
	}
	return os.ReadFile(path)
}

// Load reads controller.conf, applies its options over the defaults, and validates the result. The error joins all faults.
func Load(data []byte) (controller.Config, error) {
	cfg := controller.DefaultConfig()
	stream := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := stream.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return cfg, nil
	case err != nil:
		return cfg, fmt.Errorf("not YAML: %w", err)
	}
	if err := stream.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return cfg, errors.New("there is content after the first document; write all options into one, without \"---\" between them")
	}
	if err := fill(&cfg, doc.Content[0]); err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

// fill decodes option by option, so that each error names its option.
func fill(cfg *controller.Config, n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: must be options (name: value)", n.Line)
	}
	known := fields(reflect.ValueOf(cfg).Elem())
	var errs []error
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, n.Content[i+1]
		field, ok := known[name]
		switch first, twice := seen[name]; {
		case !ok:
			errs = append(errs, fmt.Errorf("%s: unknown option%s (line %d)", name, suggestion(name), n.Content[i].Line))
		case twice:
			errs = append(errs, fmt.Errorf("%s: is set twice, first in line %d; remove one of the two (line %d)", name, first,
				n.Content[i].Line))
		case value.Kind == yaml.ScalarNode && value.Tag == "!!null": // same as an absent option
		default:
			if err := value.Decode(field.Addr().Interface()); err != nil {
				errs = append(errs, fmt.Errorf("%s: %q: %w (line %d)", name, value.Value, err, value.Line))
			}
		}
		seen[name] = n.Content[i].Line
	}
	return errors.Join(errs...)
}

// fields maps the names of options to their fields, including those of embedded structs.
func fields(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			for name, field := range fields(v.Field(i)) {
				out[name] = field
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out[name] = v.Field(i)
	}
	return out
}

// options returns the names of all options, sorted.
func options() []string {
	var names []string
	for name := range fields(reflect.ValueOf(new(controller.Config)).Elem()) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func suggestion(name string) string {
	if meant := didyoumean.Closest(name, options()); meant != "" {
		return "; did you mean " + meant + "?"
	}
	return "; there are " + strings.Join(options(), ", ")
}
