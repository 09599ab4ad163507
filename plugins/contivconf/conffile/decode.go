package conffile

import (
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"contiv.dev/vswitch/plugins/contivconf"
)

// decoder fills structs of pointers from YAML nodes and collects all faults.
type decoder struct{ errs []error }

func (d *decoder) add(n *yaml.Node, path, format string, args ...any) {
	if path == "" {
		path = "contiv.conf"
	}
	d.errs = append(d.errs, &contivconf.FieldError{
		Field:   path,
		Problem: fmt.Sprintf(format, args...) + fmt.Sprintf(" (line %d)", n.Line),
	})
}

// fill decodes the document.
func (d *decoder) fill(into any, n *yaml.Node) {
	d.object(reflect.ValueOf(into).Elem(), n, "")
}

// options maps the names of a struct's options to their fields, including those of embedded structs.
func options(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			for name, f := range options(v.Field(i)) {
				out[name] = f
			}
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		out[name] = v.Field(i)
	}
	return out
}

// spellings maps the alternative names of options in the documentation of contiv to the options' names.
func spellings(t reflect.Type) map[string]string {
	out := map[string]string{}
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			maps.Copy(out, spellings(field.Type))
		} else if also := field.Tag.Get("also"); also != "" {
			out[also], _, _ = strings.Cut(field.Tag.Get("json"), ",")
		}
	}
	return out
}

func (d *decoder) object(v reflect.Value, n *yaml.Node, path string) {
	n = resolve(n)
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.add(n, path, "is %s; it must be a section of options (name: value)", kindOf(n))
		return
	}
	known, also := options(v), spellings(v.Type())
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		full := join(path, name)
		if option, ok := also[name]; ok {
			name = option
		}
		field, ok := known[name]
		if !ok {
			d.add(key, full, "unknown option%s", suggestion(name, known))
			continue
		}
		if first, dup := lines[name]; dup {
			d.add(key, full, "is set twice, first in line %d; remove one of the two", first)
			continue
		}
		lines[name] = key.Line
		d.value(field, value, full)
	}
}

func (d *decoder) value(field reflect.Value, n *yaml.Node, path string) {
	n = resolve(n)
	if isNull(n) {
		return
	}
	switch field.Kind() {
	case reflect.Struct:
		d.object(field, n, path)
	case reflect.Slice:
		d.list(field, n, path)
	case reflect.Pointer:
		target := reflect.New(field.Type().Elem())
		if target.Elem().Kind() == reflect.Struct {
			d.object(target.Elem(), n, path)
		} else if !d.scalar(target, n, path) {
			return
		}
		field.Set(target)
	default:
		d.add(n, path, "internal error: option of type %s", field.Type())
	}
}

func (d *decoder) list(field reflect.Value, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		d.add(n, path, "is %s; it must be a list of sections (- name: value)", kindOf(n))
		return
	}
	for i, item := range n.Content {
		element := reflect.New(field.Type().Elem()).Elem()
		d.object(element, item, fmt.Sprintf("%s[%d]", path, i))
		field.Set(reflect.Append(field, element))
	}
}

// scalar decodes into the value that target points to.
func (d *decoder) scalar(target reflect.Value, n *yaml.Node, path string) bool {
	if n.Kind != yaml.ScalarNode {
		d.add(n, path, "is %s; it must be a single value (several are separated by commas)", kindOf(n))
		return false
	}
	if t, ok := target.Interface().(encoding.TextUnmarshaler); ok {
		if n.Value == "" {
			return false
		}
		if err := t.UnmarshalText([]byte(n.Value)); err != nil {
			d.add(n, path, "%s", err)
			return false
		}
		return true
	}
	v := target.Elem()
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
		return true
	case reflect.Bool:
		var b bool
		if n.Decode(&b) != nil {
			d.add(n, path, "%q is not a truth value; write true or false", n.Value)
			return false
		}
		v.SetBool(b)
		return true
	default:
		return d.number(v, n, path)
	}
}

func (d *decoder) number(v reflect.Value, n *yaml.Node, path string) bool {
	highest := uint64(math.MaxUint64) >> (64 - v.Type().Bits())
	u, err := strconv.ParseUint(n.Value, 0, 64)
	if err != nil || u > highest {
		d.add(n, path, "%q is not a number from 0 to %d", n.Value, highest)
		return false
	}
	v.SetUint(u)
	return true
}

// resolve follows aliases.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	default:
		return fmt.Sprintf("the value %q", n.Value)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
