package cniinstall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"contiv.dev/vswitch/internal/atomicfile"
)

// Install describes the files and the directories that they are installed in.
type Install struct {
	Source   string   // directory with the binaries
	Binaries []string // their names
	BinDir   string   // the runtime's directory of plugins
	ConfDir  string   // the runtime's directory of configurations
	Conflist string   // name of our configuration list
	List     List
}

// List is the content of the configuration list.
type List struct {
	Version     string // the lowest that the runtime may support
	AgentSocket string
	Portmap     bool // host ports by the portmap plugin
	// MasqueradeAll makes portmap replace the source of packets to host ports by the node's address. VPP needs it: otherwise a pod's answer to an
	// outside client leaves by VPP's uplink and bypasses the translation in the host's stack.
	MasqueradeAll bool
}

// versions returns the versions that the plugin supports, for runtimes that select one.
func versions() []string { return []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} }

// Validate returns an error if the runtime could not use the list.
func (l List) Validate() error {
	if !slices.Contains(versions(), l.Version) {
		return fmt.Errorf("CNI version %q: use one of %v", l.Version, versions())
	}
	if !filepath.IsAbs(l.AgentSocket) {
		return fmt.Errorf("the agent's socket %q: must be an absolute path", l.AgentSocket)
	}
	return nil
}

// Render returns the configuration list as text. Runtimes that support cniVersions take the highest version that they support; older runtimes
// take cniVersion.
func (l List) Render() ([]byte, error) {
	plugins := []map[string]any{{"type": "contiv-cni", "agentSocket": l.AgentSocket}}
	if l.Portmap {
		portmap := map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}}
		if l.MasqueradeAll {
			portmap["masqAll"] = true
		}
		plugins = append(plugins, portmap)
	}
	text, err := json.MarshalIndent(map[string]any{
		"name": "contiv", "cniVersion": l.Version, "cniVersions": versions()[slices.Index(versions(),
			l.Version):], "plugins": plugins,
	}, "", "  ")
	return append(text, '\n'), err
}

// PutBinaries installs the binaries that are missing or differ, and returns their names.
func (i Install) PutBinaries() (changed []string, err error) {
	for _, name := range i.Binaries {
		put, err := putFile(filepath.Join(i.Source, name), filepath.Join(i.BinDir, name))
		if err != nil {
			return changed, fmt.Errorf("install %s in %s: %w", name, i.BinDir, err)
		}
		if put {
			changed = append(changed, name)
		}
	}
	return changed, nil
}

// PutConflist writes the configuration list unless it is there already.
func (i Install) PutConflist() (changed bool, err error) {
	text, err := i.List.Render()
	if err != nil {
		return false, fmt.Errorf("CNI configuration: %w", err)
	}
	path := filepath.Join(i.ConfDir, i.Conflist)
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, text) {
		return false, nil
	}
	if err := replace(path, text, 0o644); err != nil {
		return false, fmt.Errorf("CNI configuration %s: %w", path, err)
	}
	return true, nil
}

// ourPlugin returns the file name of the plugin.
func ourPlugin() string {
	if runtime.GOOS == "windows" {
		return "contiv-cni.exe"
	}
	return "contiv-cni"
}

// Remove removes the configuration list first, so that the node is not Ready any more, and then our own binary. The reference plugins stay:
// other programs may use them.
func (i Install) Remove() error {
	var errs []error
	for _, path := range []string{filepath.Join(i.ConfDir, i.Conflist), filepath.Join(i.BinDir, ourPlugin())} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

// putFile copies an executable unless the destination has the same content and is executable.
func putFile(from, to string) (changed bool, err error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return false, err
	}
	same, err := isExecutable(to, text)
	if err != nil || same {
		return false, err
	}
	return true, replace(to, text, 0o755)
}

// isExecutable reports whether a file exists, has the content text and is executable.
func isExecutable(path string, text []byte) (bool, error) {
	have, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	info, statErr := os.Stat(path)
	if err = errors.Join(err, statErr); err != nil {
		return false, err
	}
	return bytes.Equal(have, text) && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0), nil
}

// replace replaces a file, in a directory that all users of the node may read.
func replace(path string, text []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, text, mode)
}
