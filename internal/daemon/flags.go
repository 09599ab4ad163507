package daemon

import (
	"github.com/spf13/pflag"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/httpapi"
	"contiv.dev/vswitch/internal/kube"
)

// RegisterHTTP registers the flags of the HTTP server that what describes; the defaults are the values
// of cfg.
func RegisterHTTP(f *pflag.FlagSet, cfg *httpapi.Config, what string) {
	f.StringVar(&cfg.Address, "http", cfg.Address, "address of "+what)
	f.StringVar(&cfg.CertFile, "http-cert", cfg.CertFile, "TLS certificate of --http; required beyond loopback")
	f.StringVar(&cfg.KeyFile, "http-key", cfg.KeyFile, "TLS key of --http; required beyond loopback")
	f.StringVar(&cfg.TokenFile, "http-token-file", cfg.TokenFile, "file with the bearer token for full access; "+
		"beyond loopback, this or --http-read-token-file is required")
	f.StringVar(&cfg.ReadTokenFile, "http-read-token-file", cfg.ReadTokenFile, "file with the bearer token for read access, for "+
		"example for Prometheus")
}

const etcdEndpoints = "etcd-endpoints"

// RegisterEtcd registers the flags of etcd; what describes which etcd it is.
func RegisterEtcd(f *pflag.FlagSet, cfg *clusterdb.Config, what string) {
	f.StringSliceVar(&cfg.Endpoints, etcdEndpoints, cfg.Endpoints, what)
	f.StringVar(&cfg.CAFile, "etcd-ca", cfg.CAFile, "CA certificate of etcd")
	f.StringVar(&cfg.CertFile, "etcd-cert", cfg.CertFile, "client certificate for etcd")
	f.StringVar(&cfg.KeyFile, "etcd-key", cfg.KeyFile, "key of the client certificate for etcd")
	f.BoolVar(&cfg.InsecureTransport, "etcd-insecure-transport", cfg.InsecureTransport,
		"connect to etcd on other machines without TLS")
}

// RegisterKubernetes registers the flags of the API server.
func RegisterKubernetes(f *pflag.FlagSet, cfg *kube.Config) {
	f.StringVar(&cfg.Kubeconfig, "kubeconfig", cfg.Kubeconfig, "how to reach the API server (default: the pod's service account)")
	f.StringVar(&cfg.Server, "kubernetes-server", cfg.Server, "URL of the API server, for a node that has no service addresses "+
		"yet")
}

// RegisterLogLevel registers --log-level.
func RegisterLogLevel(f *pflag.FlagSet, level *string) {
	f.StringVar(level, "log-level", *level, "debug, info, warn or error")
}
