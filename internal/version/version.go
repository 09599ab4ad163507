package version

import (
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// release and commit are set by the linker.
var release, commit string

// devel is the version of a program whose version the linker has not set.
const devel = "devel"

// Info describes the running program.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

// Get returns the version of this program.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return stamped(release, commit, build)
}

// stamped returns the values that the linker has set, completed with those that the Go toolchain
// has recorded.
func stamped(release, commit string, build *debug.BuildInfo) Info {
	i := Info{Version: release, Commit: commit, Go: runtime.Version()}
	if i.Version == "" {
		i.Version = devel
	}
	if i.Commit != "" || build == nil {
		return i
	}
	dirty := ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			i.Commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if i.Commit != "" {
		i.Commit += dirty
	}
	return i
}

// String returns the version with the commit, such as "0.1.0 (4f3a2b1c0d9e)".
func (i Info) String() string {
	if i.Commit == "" {
		return i.Version
	}
	return i.Version + " (" + i.Commit + ")"
}

// Template is the output of --version, as a template for cobra: the program and its version.
const Template = "{{.Name}} {{.Version}}\n"

// Attrs returns the version as attributes for the first line of a log.
func (i Info) Attrs() []any {
	return []any{slog.String("version", i.Version), slog.String("commit", i.Commit), slog.String("go", i.Go)}
}

// Metric returns contiv_build_info, which is always 1.
func (i Info) Metric() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "contiv_build_info", Help: "Always 1; the labels say which version runs.",
		ConstLabels: prometheus.Labels{"version": i.Version, "commit": i.Commit, "goversion": i.Go},
	})
	g.Set(1)
	return g
}
