package contiv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// A VPP that has no plugin differs from a VPP that has a plugin of another version. The latter runs with the objects of the agent that was
// made for it, which this agent can neither read nor remove. If it counted as a VPP without the plugin, this agent would program NAT44 beside
// the plugin's services and would report its policies as open. So the agent does not use it at all until one of them is replaced.

// Version is the version of the plugin's API for which this agent is made.
const Version = contiv.APIVersion

// ForeignPluginError reports a VPP with a plugin for which this agent is not made.
type ForeignPluginError struct {
	Found string   // version of the plugin; "" if it does not report one
	Lacks []string // messages that it does not have, or has with another layout
}

func (e *ForeignPluginError) Error() string {
	found := e.Found
	if found == "" {
		found = "of unknown version"
	}
	text := fmt.Sprintf("VPP runs the contiv plugin %s, this agent needs %s: the agent writes nothing to this VPP, which keeps its last "+
		"configuration; delete this node's VPP pod so that VPP starts from this release's image, or install the agent of VPP's release "+
		"(docs/upgrade.md)", found, Version)
	if len(e.Lacks) > 0 {
		text += "; the plugin lacks " + shorten(e.Lacks)
	}
	return text
}

// Unwrap makes the connection pause between attempts.
func (e *ForeignPluginError) Unwrap() error { return conn.ErrRejected }

// listed is the number of messages that the error names.
const listed = 3

func shorten(names []string) string {
	if len(names) <= listed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more messages", strings.Join(names[:listed], ", "), len(names)-listed)
}

// Accept is conn.Config.Accept: it rejects a VPP with a plugin for which this agent is not made. A VPP without a plugin is accepted.
func Accept(ctx context.Context, vpp conn.Candidate) error {
	err := vpp.Has(append(Messages(), &contiv.ContivPluginGetVersion{}))
	var lacks *conn.IncompatibleError
	if errors.As(err, &lacks) && len(lacks.Missing) == lacks.Needed {
		return nil
	}
	foreign := &ForeignPluginError{}
	var v contiv.ContivPluginGetVersionReply
	switch failed := vpp.Invoke(ctx, &contiv.ContivPluginGetVersion{}, &v); {
	case errors.Is(failed, conn.ErrUnknownMessage):
	case failed != nil:
		return fmt.Errorf("version of VPP's contiv plugin: %w", failed)
	default:
		foreign.Found = fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	}
	if lacks != nil {
		foreign.Lacks = slices.Concat(lacks.Missing, lacks.Differ)
		return foreign
	}
	if major, _, _ := strings.Cut(Version, "."); fmt.Sprint(v.Major) != major {
		return foreign
	}
	return nil
}
