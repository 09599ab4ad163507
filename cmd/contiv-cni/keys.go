package main

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// knownKeys returns our keys and those of the CNI specification.
func knownKeys() []string {
	return []string{
		"agentSocket", "logFile", "timeout", "mtu",
		"cniVersion", "cniVersions", "name", "type", "args", "ipMasq", "ipam", "dns", "capabilities", "runtimeConfig", "prevResult",
		"disableCheck", "disableGC", "loadOnlyInlinedPlugins",
	}
}

// oldKeys maps keys of contiv to what replaces them.
func oldKeys() map[string]string {
	return map[string]string{"grpcServer": "use agentSocket, the path of the agent's socket", "etcdEndpoints": "remove it"}
}

// checkKeys rejects keys that have no effect, such as misspelt ones. Keys of other programs contain a domain ("example.com/key") and are
// accepted.
func checkKeys(stdin []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(stdin, &object); err != nil {
		return nil // parseConfig reports invalid JSON
	}
	errs := unknownKeys("", object, knownKeys())
	var dns map[string]json.RawMessage
	if json.Unmarshal(object["dns"], &dns) == nil {
		errs = append(errs, unknownKeys("dns.", dns, []string{"nameservers", "domain", "search", "options"})...)
	}
	return errors.Join(errs...)
}

// maxKeyText is the longest part of a key in an error.
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

// similar reports whether a and b, ignoring case, differ in one short part only: in up to two letters, or in the end of a word that is
// otherwise complete.
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
