package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/daemon"
	"contiv.dev/vswitch/internal/httpapi"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/plugins/policy/large"
)

// options holds the flags. Flags that the agent has, too, have the same names.
type options struct {
	name       string
	kubernetes kube.Config
	etcd       clusterdb.Config
	http       httpapi.Config
	leaseTTL   time.Duration
	resync     time.Duration
	logLevel   string
	// policySetLimit must have the value of the agents' flag of this name.
	policySetLimit int
	// policyStatus is how often conditions of policies are compared.
	policyStatus time.Duration
}

// minLeaseTTL is the shortest lease that an etcd with default timing keeps.
const minLeaseTTL = 2 * time.Second

func defaultOptions() *options {
	return &options{
		name: os.Getenv("POD_NAME"), http: httpapi.Config{Address: "127.0.0.1:9191"}, leaseTTL: 10 * time.Second,
		resync: 5 * time.Minute, logLevel: "info", policyStatus: kube.PolicyStatusInterval,
	}
}

func (o *options) register(f *pflag.FlagSet) {
	f.StringVar(&o.name, "name", o.name, "name of this replica (default: POD_NAME, otherwise the host name)")
	o.kubernetes.RegisterFlags(f)
	o.etcd.RegisterFlags(f, "the etcd that the agents use, comma separated")
	o.http.RegisterFlags(f, "/liveness, /readiness and /metrics")
	f.DurationVar(&o.leaseTTL, "lease-ttl", o.leaseTTL, "time after which another replica replaces a leader that failed")
	f.DurationVar(&o.resync, "resync-interval", o.resync, "interval between two comparisons of the whole state in etcd")
	large.RegisterFlag(f, &o.policySetLimit, "the agents' flag of this name, for the conditions of ClusterNetworkPolicies; "+
		"set both to the same value")
	f.DurationVar(&o.policyStatus, "policy-status-interval", o.policyStatus, "interval between two comparisons of the conditions of ClusterNetworkPolicies")
	daemon.RegisterLogLevel(f, &o.logLevel)
}

// complete sets what depends on the machine and checks the rest.
func (o *options) complete() error {
	var errs []error
	if o.name == "" {
		name, err := os.Hostname()
		if err != nil {
			errs = append(errs, fmt.Errorf("host name: %w; set --name", err))
		}
		o.name = name
	}
	o.kubernetes.UserAgent = "contiv-ksr/" + o.name
	if len(o.etcd.Endpoints) == 0 {
		errs = append(errs, errors.New("--etcd-endpoints is missing: give the etcd that the agents use"))
	}
	if o.etcd.Service != "" {
		if _, _, _, err := kube.ParseService(o.etcd.Service); err != nil {
			errs = append(errs, fmt.Errorf("--etcd-service: %w", err))
		}
	}
	if o.leaseTTL < minLeaseTTL {
		errs = append(errs, fmt.Errorf("--lease-ttl %s: must be at least %s", o.leaseTTL, minLeaseTTL))
	}
	if o.resync < time.Second {
		errs = append(errs, fmt.Errorf("--resync-interval %s: must be at least 1s", o.resync))
	}
	if o.policyStatus < time.Second {
		errs = append(errs, fmt.Errorf("--policy-status-interval %s: must be at least 1s", o.policyStatus))
	}
	return errors.Join(append(errs, large.CheckLimit(o.policySetLimit))...)
}
