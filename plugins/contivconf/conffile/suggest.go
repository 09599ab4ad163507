package conffile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"contiv.dev/vswitch/plugins/contivconf"
)

// suggestion says what an unknown option was probably meant to be: a similar name in the same section, else the place where
// the very name (or one like it) belongs.
func suggestion(name string, here map[string]reflect.Value) string {
	names := slices.Sorted(maps.Keys(here))
	if best := closest(name, names); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	places := map[string]string{}
	everywhere(reflect.TypeFor[contivconf.File](), "", places)
	if best := closest(name, slices.Sorted(maps.Keys(places))); best != "" {
		if places[best] == "" {
			return fmt.Sprintf("; did you mean %s at the top level?", best)
		}
		return fmt.Sprintf("; did you mean %s in section %s?", best, places[best])
	}
	return "; the options here are " + strings.Join(names, ", ")
}

// everywhere lists all options with the section they belong to.
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

// closest is the candidate which differs least from name, if it differs little for the length of
// name, else the shortest one that begins with name. Case does not count.
func closest(name string, candidates []string) string {
	if len(name) > 64 {
		return ""
	}
	best, bestDist := "", max(1, len(name)/3)+1
	beginning := ""
	for _, c := range candidates {
		a, b := strings.ToLower(name), strings.ToLower(c)
		if d := distance(a, b); d < bestDist {
			best, bestDist = c, d
		}
		if len(a) >= 4 && strings.HasPrefix(b, a) && (beginning == "" || len(c) < len(beginning)) {
			beginning = c
		}
	}
	if best == "" {
		return beginning
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
