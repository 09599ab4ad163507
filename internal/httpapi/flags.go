package httpapi

import "github.com/spf13/pflag"

// The names of the flags that set Config's fields, for error messages.
const (
	flagAddress   = "--http"
	flagTLS       = "--http-cert and --http-key"
	flagToken     = "--http-token-file"
	flagReadToken = "--http-read-token-file"
)

// RegisterFlags registers the flags of a server that serves what; the defaults are the values of c.
func (c *Config) RegisterFlags(f *pflag.FlagSet, what string) {
	f.StringVar(&c.Address, "http", c.Address, "address of "+what)
	f.StringVar(&c.CertFile, "http-cert", c.CertFile, "TLS certificate of --http; required beyond loopback")
	f.StringVar(&c.KeyFile, "http-key", c.KeyFile, "TLS key of --http; required beyond loopback")
	f.StringVar(&c.TokenFile, "http-token-file", c.TokenFile, "file with the bearer token for full access; "+
		"beyond loopback, this or --http-read-token-file is required")
	f.StringVar(&c.ReadTokenFile, "http-read-token-file", c.ReadTokenFile, "file with the bearer token for read access, for "+
		"example for Prometheus")
}
