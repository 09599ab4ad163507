package compiler

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	kube "contiv.dev/vswitch/internal/kube/model"
)

// pair is a label.
type pair struct{ key, value string }

// selector is a compiled label selector. text identifies it: selectors with the same text select the same objects.
type selector struct {
	text  string
	pairs []pair // labels that an object must have
	exprs []expression
	// anchors are labels of which every selected object has at least one. nil: the selector has no such list.
	anchors []pair
}

type expression struct {
	op     kube.LabelExpression_Operator
	key    string
	values []string // sorted
}

// newSelector compiles a selector. nil selects everything, like the empty selector.
func newSelector(s *kube.LabelSelector) *selector {
	out := &selector{}
	for _, k := range slices.Sorted(maps.Keys(s.GetMatchLabels())) {
		out.pairs = append(out.pairs, pair{k, s.GetMatchLabels()[k]})
	}
	for _, e := range s.GetMatchExpressions() {
		values := slices.Clone(e.GetValues())
		slices.Sort(values)
		out.exprs = append(out.exprs, expression{e.GetOperator(), e.GetKey(), slices.Compact(values)})
	}
	slices.SortFunc(out.exprs, func(a, b expression) int { return strings.Compare(a.String(), b.String()) })
	out.text = out.describe()
	out.anchors = out.findAnchors()
	return out
}

func (s *selector) findAnchors() []pair {
	if len(s.pairs) > 0 {
		return s.pairs[:1]
	}
	for _, e := range s.exprs {
		if e.op != kube.LabelExpression_IN || len(e.values) == 0 {
			continue
		}
		list := make([]pair, len(e.values))
		for i, v := range e.values {
			list[i] = pair{e.key, v}
		}
		return list
	}
	return nil
}

// matches reports whether the selector selects an object with these labels.
func (s *selector) matches(labels map[string]string) bool {
	for _, p := range s.pairs {
		if v, has := labels[p.key]; !has || v != p.value {
			return false
		}
	}
	for i := range s.exprs {
		if !s.exprs[i].matches(labels) {
			return false
		}
	}
	return true
}

func (e *expression) matches(labels map[string]string) bool {
	value, has := labels[e.key]
	switch e.op {
	case kube.LabelExpression_IN:
		return has && slices.Contains(e.values, value)
	case kube.LabelExpression_NOT_IN:
		return !has || !slices.Contains(e.values, value)
	case kube.LabelExpression_EXISTS:
		return has
	case kube.LabelExpression_DOES_NOT_EXIST:
		return !has
	}
	return false
}

// describe returns the selector in the notation of kubectl. Texts that are not plain label text are quoted, so that two selectors with the
// same text are the same selector.
func (s *selector) describe() string {
	var parts []string
	for _, p := range s.pairs {
		parts = append(parts, quote(p.key)+"="+quote(p.value))
	}
	for _, e := range s.exprs {
		parts = append(parts, e.String())
	}
	return strings.Join(parts, ",")
}

func (e expression) String() string {
	values := make([]string, len(e.values))
	for i, v := range e.values {
		values[i] = quote(v)
	}
	list := "(" + strings.Join(values, ",") + ")"
	switch e.op {
	case kube.LabelExpression_IN:
		return quote(e.key) + " in " + list
	case kube.LabelExpression_NOT_IN:
		return quote(e.key) + " notin " + list
	case kube.LabelExpression_EXISTS:
		return quote(e.key)
	case kube.LabelExpression_DOES_NOT_EXIST:
		return "!" + quote(e.key)
	}
	return quote(e.key) + " ?" + strconv.Itoa(int(e.op)) + " " + list
}

func quote(text string) string {
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == '/':
		default:
			return strconv.Quote(text)
		}
	}
	return text
}
