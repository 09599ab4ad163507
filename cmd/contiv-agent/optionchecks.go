package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxNodeName   = 253 // the limit of Kubernetes
	maxSocketPath = 107 // the limit of sockaddr_un
)

// defaultNodeName returns the name that kubelet gives the node by default.
func defaultNodeName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("host name: %w; set --node-name", err)
	}
	return strings.ToLower(strings.TrimSpace(name)), nil
}

// check finds errors that would otherwise appear only after half of the agent has started.
func (o *options) check() error {
	return errors.Join(checkNodeName(o.nodeName), checkSocket("cni-socket", o.cniSocket),
		checkSocket("run-dir", filepath.Join(o.runDir, restSocket)), o.checkPlatform())
}

// checkNodeName rejects names that cannot be a part of keys and of paths.
func checkNodeName(name string) error {
	alnum := func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
	ok := name != "" && len(name) <= maxNodeName && alnum(name[0]) && alnum(name[len(name)-1])
	for i := range len(name) {
		ok = ok && (alnum(name[i]) || strings.IndexByte("-._", name[i]) >= 0)
	}
	if !ok {
		return fmt.Errorf("--node-name %q: use the name that Kubernetes has for the node: up to %d letters, digits, '-', '.', '_', "+
			"with a letter or digit at both ends", name, maxNodeName)
	}
	return nil
}

func checkSocket(flag, path string) error {
	if !filepath.IsAbs(path) || len(path) > maxSocketPath || strings.ContainsRune(path, 0) {
		return fmt.Errorf("--%s: socket %q: must be an absolute path of at most %d bytes", flag, path, maxSocketPath)
	}
	return nil
}
