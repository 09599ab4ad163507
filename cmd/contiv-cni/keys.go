package main

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// knownKeys are ours, and those that the CNI specification has.
func knownKeys() []string {
	return []string{
		"agentSocket", "logFile", "timeout", "mtu",
		"cniVersion", "cniVersions", "name", "type", "args", "ipMasq", "ipam", "dns", "capabilities", "runtimeConfig", "prevResult",
		"disableCheck", "disableGC", "loadOnlyInlinedPlugins",
	}
}

// oldKeys are contiv's, with what there is instead.
func oldKeys() map[string]string {
	return map[string]string{"grpcServer": "use agentSocket, the path of the agent's socket", "etcdEndpoints": "remove it"}
}

// checkKeys refuses keys that have no effect, which a misspelt one would be. Keys of others have a domain ("example.com/key").
func checkKeys(stdin []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(stdin, &object); err != nil {
		return nil // not ours to say
	}
	errs := unknownKeys("", object, knownKeys())
	var dns map[string]json.RawMessage
	if json.Unmarshal(object["dns"], &dns) == nil {
		errs = append(errs, unknownKeys("dns.", dns, []string{"nameservers", "domain", "search", "options"})...)
	}
	return errors.Join(errs...)
}

// maxKeyText is how much of a key is reported.
const maxKeyText = 64

func unknownKeys(section string, object map[string]json.RawMessage, known []string) []error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(known, key) || strings.ContainsAny(key, "/.") {
			continue
		}
		fix := "the keys here are " + strings.Join(known, ", ")
		if old, ok := oldKeys()[key]; ok && section == "" {
			fix = old
		} else if at := slices.IndexFunc(known, func(k string) bool { return similar(key, k) }); at >= 0 {
			fix = "did you mean " + known[at] + "?"
		}
		if len(key) > maxKeyText {
			key = strings.ToValidUTF8(key[:maxKeyText], "") + "…"
		}
		errs = append(errs, invalid(section+key, "unknown key; %s", fix))
	}
	return errs
}

// similar reports whether a becomes b, whatever the case of letters, when the part in which they differ is replaced, and that part is
// small: up to two letters, or the end of a word of which most is there.
func similar(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	begin := 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	differ := max(len(a), len(b)) - begin - end
	return differ <= 2 && differ < len(b)/2+1 || begin >= 4 && begin == min(len(a), len(b))
}
