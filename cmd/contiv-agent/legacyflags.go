package main

import "strings"

// contivFlags maps flags of contiv's agent, as its documentation writes them (-contiv-config=PATH), to our names.
func contivFlags() map[string]string {
	return map[string]string{"contiv-config": "config", "controller-config": "controller-config"}
}

// contivArgs translates arguments in the style of contiv's agent.
func contivArgs(args []string) []string {
	out := make([]string, 0, len(args))
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if flag, ok := contivFlags()[name]; ok && strings.HasPrefix(arg, "-") {
			if arg = "--" + flag; hasValue {
				arg += "=" + value
			}
		}
		out = append(out, arg)
	}
	return out
}
