package scheduler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// page is a part of a list of values in the order of their keys.
type page struct {
	after string // the last key of the previous page
	limit int    // 0: no limit
}

func pageOf(p map[string]string) (pg page, err error) {
	pg.after = p["after"]
	pg.limit, err = count(p, "limit")
	return pg, err
}

// cut returns the page of a list.
func (pg page) cut(values []Value) []Value {
	first, _ := slices.BinarySearchFunc(values, pg.after, func(v Value, key string) int { return strings.Compare(v.Key, key) })
	for first < len(values) && pg.after != "" && values[first].Key == pg.after {
		first++
	}
	values = values[first:]
	if pg.limit > 0 && pg.limit < len(values) {
		values = values[:pg.limit]
	}
	return values
}

// count reads a positive number; 0 if the parameter is not set.
func count(p map[string]string, name string) (int, error) {
	text := p[name]
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return 0, &paramError{param: name, err: fmt.Errorf("%q is not an integer of at least 1", text)}
	}
	return int(n), nil
}
