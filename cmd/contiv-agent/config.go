package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
	"contiv.dev/vswitch/plugins/controller"
	controllerfile "contiv.dev/vswitch/plugins/controller/conffile"
)

// loadConfig reads contiv.conf, and rejects a configuration that does not fit this node. At this point nothing has been claimed or programmed.
func (a *agent) loadConfig(ctx context.Context) error {
	env := contivconf.Env{
		NodeName: a.opts.nodeName,
		HasVhostNet: func() bool {
			_, err := os.Stat("/dev/vhost-net")
			return err == nil && a.opts.dataplane == dataplaneVPP
		},
	}
	conf, name := contivconf.Default(env), "contiv.conf (its defaults)"
	if a.opts.config != "" {
		var err error
		if conf, err = conffile.LoadFile(a.opts.config, env); err != nil {
			return err
		}
		name = a.opts.config
	}
	if text, mistyped := conf.MissingSection(); mistyped {
		a.log.Warn(text)
	} else if text != "" {
		a.log.Info(text)
	}
	if a.opts.usesVPP() {
		if err := conf.CheckVPP(); err != nil {
			return fmt.Errorf("%s does not fit this node:\n%w", name, err)
		}
	}
	networks, err := a.host.monitor.Networks(ctx)
	if err != nil {
		return err
	}
	if a.opts.dataplane != dataplaneFake { // the fake sends no packets
		if err := conf.CheckHost(networks); err != nil {
			return fmt.Errorf("%s does not fit this node:\n%w", name, err)
		}
	}
	a.conf = conf
	a.host.onNetworks = func(now []contivconf.HostNetwork) error { return conf.CheckHost(now) }
	a.warnOfInterconnect(conf, networks)
	return nil
}

// warnOfInterconnect warns if the nodes' addresses on VPP are in the network of a NIC that is not VPP's. This works if both NICs are on the
// same network; otherwise pods cannot reach the neighbours of that NIC.
func (a *agent) warnOfInterconnect(conf *contivconf.Config, networks []contivconf.HostNetwork) {
	if a.opts.dataplane != dataplaneVPP || conf.Node().Uplink.StandAlone {
		return
	}
	uplink := deviceOf(conf.Node().MainVPPInterface.InterfaceName)
	if uplink == "" && conf.Node().Uplink.Selects() {
		return // the uplink is not known yet
	}
	if cidr, nic, found := conf.InterconnectOf(networks, uplink); found {
		a.log.Warn("nodeInterconnectCIDR overlaps with the network of another NIC: unless VPP's NIC is on the same network, pods cannot reach "+
			"that network; choose another nodeInterconnectCIDR", "nodeInterconnectCIDR", cidr, "nic", nic.Interface, "network",
			nic.Address.Masked())
	}
}

// loadControllerConfig reads controller.conf. Other parts of the agent get the settings that they use from a.control.
func (a *agent) loadControllerConfig() (err error) {
	a.control = controller.DefaultConfig()
	if a.opts.controllerConfig != "" {
		if a.control, err = controllerfile.LoadFile(a.opts.controllerConfig); err != nil {
			return err
		}
	}
	a.control.EnableVerification = a.control.EnableVerification || a.opts.verify
	return nil
}

// maxRetryDelay is the longest delay between retries of a value.
const maxRetryDelay = time.Minute

// retryPolicy converts the retry settings of controller.conf to the scheduler's.
func retryPolicy(c controller.RetryConfig) scheduler.RetryPolicy {
	p := scheduler.RetryPolicy{First: time.Duration(c.DelayRetry), Attempts: c.MaxRetryAttempts}
	if p.Max = p.First; c.EnableExpBackoffRetry {
		p.Max = max(p.First, maxRetryDelay)
	}
	if p.Attempts == 0 {
		p.Attempts = -1 // contiv's 0 means no limit
	}
	return p
}
