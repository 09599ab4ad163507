package conn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
)

// IncompatibleError reports a VPP that lacks messages which the agent needs. It lists all of them.
type IncompatibleError struct {
	Version string   // version of that VPP, if it reported one
	Missing []string // messages that VPP does not have: a plugin is not loaded, or has another version
	Differ  []string // messages that VPP has with another layout: another version
	Needed  int      // how many messages were checked
}

func (e *IncompatibleError) Error() string {
	var b strings.Builder
	version := e.Version
	if version == "" {
		version = "of unknown version"
	}
	fmt.Fprintf(&b, "VPP %s is not compatible with this agent, which needs VPP 25.10 (%d of %d messages do not match)",
		version, len(e.Missing)+len(e.Differ), e.Needed)
	if len(e.Missing) > 0 {
		fmt.Fprintf(&b, "; missing (plugin not loaded or other version): %s", strings.Join(e.Missing, ", "))
	}
	if len(e.Differ) > 0 {
		fmt.Fprintf(&b, "; with another layout (other version): %s", strings.Join(e.Differ, ", "))
	}
	b.WriteString("; install VPP 25.10 and its plugins from FD.io's release repository " +
		"(https://packagecloud.io/fdio/release) and check that VPP's startup.conf does not disable the plugins")
	return b.String()
}

// Candidate is a VPP with which there is no session yet.
type Candidate struct {
	conn    *Conn
	t       *transport
	version string
}

// Has returns nil if VPP has the messages and their replies, or an *IncompatibleError that lists the missing ones.
func (v Candidate) Has(messages []api.Message) error {
	return v.conn.types.check(v.t.ids, messages, v.version)
}

// Invoke makes one request and waits for its answer, which it stores in reply.
func (v Candidate) Invoke(ctx context.Context, req, reply api.Message) error {
	return v.conn.calls.invoke(ctx, v.t, req, reply)
}

// check compares VPP's message table with the required messages and their replies.
func (reg registry) check(ids map[string]uint16, required []api.Message, version string) error {
	have := map[string]bool{} // by name
	for key := range ids {
		if i := strings.LastIndexByte(key, '_'); i > 0 {
			have[key[:i]] = true
		}
	}
	answers := map[string]string{} // name to name_crc of the messages that the agent has
	for key, typ := range reg {
		answers[typ.name] = key
	}
	e := &IncompatibleError{Version: version}
	seen := map[string]bool{}
	verify := func(name, key string) {
		if key == "" || seen[key] {
			return
		}
		seen[key] = true
		e.Needed++
		if _, ok := ids[key]; ok {
			return
		}
		if have[name] {
			e.Differ = append(e.Differ, key)
		} else {
			e.Missing = append(e.Missing, key)
		}
	}
	for _, m := range required {
		name := m.GetMessageName()
		verify(name, messageKey(m))
		verify(name+"_reply", answers[name+"_reply"])
		if base, version, ok := cutDump(name); ok {
			details := base + "_details" + version
			if answers[details] == "" {
				details = base + version + "_details"
			}
			verify(details, answers[details])
		}
	}
	if len(e.Missing)+len(e.Differ) == 0 {
		return nil
	}
	slices.Sort(e.Missing)
	slices.Sort(e.Differ)
	return e
}

// cutDump splits the name of a dump at "_dump": the version comes before it in ip_route_v2_dump, and would
// come after it in acl_dump_v2.
func cutDump(name string) (base, version string, ok bool) {
	base, version, ok = strings.Cut(name, "_dump")
	return base, version, ok
}
