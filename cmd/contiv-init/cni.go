package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"contiv.dev/vswitch/cmd/contiv-init/internal/cniinstall"
	"contiv.dev/vswitch/internal/kube"
)

// untilReady is the interval of checks until the agent is ready, and the first pause after another failure; queryTimeout is the timeout of a
// request.
const (
	untilReady   = 100 * time.Millisecond
	queryTimeout = 5 * time.Second
	// conditionInterval is how often the node's condition is compared: every node of the cluster sends this request to the same API server.
	conditionInterval = time.Minute
)

type cniOptions struct {
	*common
	install   cniinstall.Install
	rest      string
	condition bool
	interval  time.Duration // between checks, after all is installed

	put         bool      // the plugins have been installed once
	reported    string    // the last fault that was logged
	conditionAt time.Time // when the condition was last written to the API server
}

func (o *cniOptions) places(cmd *cobra.Command) {
	f, i := cmd.Flags(), &o.install
	f.StringVar(&i.BinDir, "cni-bin-dir", "/opt/cni/bin", "directory of the runtime's CNI plugins")
	f.StringVar(&i.ConfDir, "cni-conf-dir", "/etc/cni/net.d", "directory of the runtime's CNI configurations")
	f.StringVar(&i.Conflist, "conflist", "10-contiv.conflist", "name of our CNI configuration file")
}

func cniCommand(c *common) *cobra.Command {
	o := &cniOptions{common: c}
	cmd := &cobra.Command{
		Use:   "cni",
		Short: "Install the CNI plugin, and its configuration once the agent is ready; keep both in place",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.places(cmd)
	f, i := cmd.Flags(), &o.install
	f.StringVar(&i.Source, "source", "/usr/local/bin", "directory from which the plugins are copied")
	f.StringSliceVar(&i.Binaries, "binaries", []string{"contiv-cni", "loopback", "portmap"}, "plugins to install")
	f.StringVar(&i.List.Version, "cni-version", "1.0.0",
		"the oldest CNI version to accept; runtimes use the newest that they support")
	f.StringVar(&i.List.AgentSocket, "agent-cni-socket", "/run/contiv/cni.sock", "path of the agent's CNI socket on the host")
	f.BoolVar(&i.List.Portmap, "portmap", true, "host ports by the portmap plugin")
	f.BoolVar(&i.List.MasqueradeAll, "portmap-masquerade", false,
		"replace the address of host port clients by the node's address; required if VPP has the uplink")
	f.StringVar(&o.rest, "agent-socket", "/run/contiv/rest.sock", "the agent's REST socket")
	f.DurationVar(&o.interval, "interval", 10*time.Second, "interval between two checks that plugins and configuration are in place")
	f.BoolVar(&o.condition, "node-condition", true,
		"report to the API server when the node's network is available (NetworkUnavailable=False)")
	return cmd
}

func uninstallCommand(c *common) *cobra.Command {
	o := &cniOptions{common: c}
	cmd := &cobra.Command{
		Use:   "uninstall-cni",
		Short: "Remove our CNI configuration and plugin; running pods keep their network",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return o.install.Remove() },
	}
	o.places(cmd)
	return cmd
}

// run installs the plugins and the configuration, and repairs them when other programs remove or change them. It ends with ctx only.
func (o *cniOptions) run(ctx context.Context) error {
	if err := o.install.List.Validate(); err != nil {
		return err
	}
	var client *kube.Client
	if o.condition {
		var err error
		if client, err = o.client(); err != nil {
			return err
		}
	}
	ready, pause := false, untilReady
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		err := o.step(ctx, client, &ready)
		o.logOnce(err)
		switch {
		case err == nil:
			pause = untilReady
			timer.Reset(o.interval)
		case errors.As(err, &notReady{}):
			timer.Reset(untilReady)
		default: // all nodes share the API server, and other programs use the disk
			timer.Reset(pause)
			pause = min(2*pause, o.interval)
		}
	}
}

// notReady is the error of an agent that is not ready yet. Checking again costs little.
type notReady struct{ error }

// step does the work that is due: it installs the plugins and, once the agent is or was ready, the configuration and the condition.
func (o *cniOptions) step(ctx context.Context, client *kube.Client, ready *bool) error {
	if *ready || !o.put {
		changed, err := o.install.PutBinaries()
		if err != nil {
			return err
		}
		if len(changed) > 0 {
			o.log.Info("CNI plugins installed", "plugins", changed, "dir", o.install.BinDir)
		}
		o.put = true
	}
	if !*ready {
		if err := agentReady(ctx, o.rest); err != nil {
			return notReady{err}
		}
		*ready = true
	}
	if changed, err := o.install.PutConflist(); err != nil {
		return err
	} else if changed {
		o.log.Info("CNI configuration written", "file", o.install.Conflist, "dir", o.install.ConfDir)
	}
	if client == nil || time.Since(o.conditionAt) < conditionInterval {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	node, err := o.nodeName()
	if err != nil {
		return err
	}
	err = client.SetNodeCondition(ctx, node, kube.NodeCondition{
		Type: conditionNetwork, Reason: "ContivIsReady", Message: "the vswitch serves pods on this node",
	})
	if err == nil {
		o.conditionAt = time.Now()
	}
	return err
}

// logOnce logs a fault once, and not at each attempt.
func (o *cniOptions) logOnce(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != o.reported {
		o.log.Info("waiting until the agent is ready", "reason", text)
	}
	o.reported = text
}

// agentReady queries the agent's readiness.
func agentReady(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/readiness", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New("agent is not ready: " + strings.TrimSpace(string(text)))
	}
	return nil
}
