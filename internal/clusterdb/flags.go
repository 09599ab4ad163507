package clusterdb

import (
	"errors"

	"github.com/spf13/pflag"
)

const flagEndpoints = "etcd-endpoints"

// RegisterFlags registers the flags of etcd; what describes which etcd it is. The defaults are the values of c.
func (c *Config) RegisterFlags(f *pflag.FlagSet, what string) {
	f.StringSliceVar(&c.Endpoints, flagEndpoints, c.Endpoints, what)
	f.StringVar(&c.Service, "etcd-service", c.Service, "service whose pods are the members of etcd, as NAMESPACE/NAME:PORT: when they move, their addresses "+
		"replace those of --etcd-endpoints")
	f.StringVar(&c.CAFile, "etcd-ca", c.CAFile, "CA certificate of etcd")
	f.StringVar(&c.CertFile, "etcd-cert", c.CertFile, "client certificate for etcd")
	f.StringVar(&c.KeyFile, "etcd-key", c.KeyFile, "key of the client certificate for etcd")
	f.BoolVar(&c.InsecureTransport, "etcd-insecure-transport", c.InsecureTransport, "connect to etcd on other machines without TLS")
}

// CheckFlags rejects an empty list of endpoints, for example from a variable that was not filled in: a node that is to join a cluster must not
// start a cluster of its own.
func CheckFlags(f *pflag.FlagSet) error {
	if e := f.Lookup(flagEndpoints); e != nil && e.Changed && e.Value.String() == "[]" {
		return errors.New("--etcd-endpoints (or CONTIV_ETCD_ENDPOINTS) is an empty list: set the addresses of etcd, or omit the flag")
	}
	return nil
}
