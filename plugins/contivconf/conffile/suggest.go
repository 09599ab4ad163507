package conffile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/didyoumean"
	"contiv.dev/vswitch/plugins/contivconf"
)

// suggestion returns a hint for an unknown option: a similar name in the same section, else the section to which the same or a similar name
// belongs.
func suggestion(name string, here map[string]reflect.Value) string {
	names := slices.Sorted(maps.Keys(here))
	if best := didyoumean.Closest(name, names); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	places := map[string]string{}
	everywhere(reflect.TypeFor[contivconf.File](), "", places)
	if best := didyoumean.Closest(name, slices.Sorted(maps.Keys(places))); best != "" {
		if places[best] == "" {
			return fmt.Sprintf("; did you mean %s at the top level?", best)
		}
		return fmt.Sprintf("; did you mean %s in section %s?", best, places[best])
	}
	return "; the options here are " + strings.Join(names, ", ")
}

// everywhere lists all options with their sections.
func everywhere(t reflect.Type, section string, into map[string]string) {
	for t.Kind() != reflect.Struct {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			everywhere(f.Type, section, into)
			continue
		}
		if _, known := into[name]; !known {
			into[name] = section
		}
		ft := f.Type
		for ft.Kind() == reflect.Pointer || (ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct) {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct {
			everywhere(ft, join(section, name), into)
		}
	}
}
