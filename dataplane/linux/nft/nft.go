package nft

import (
	"errors"
	"fmt"

	"contiv.dev/vswitch/dataplane/linux/nft/policy"
	"contiv.dev/vswitch/dataplane/linux/nft/services"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Supported returns nil if the kernel has all features of nf_tables that policy and services use. Nothing is changed: the features are
// tested in transactions that the kernel cannot complete and therefore reverts.
func Supported(ns *nsdo.Namespace) error {
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		if err := errors.Join(policy.Supported(ns, f), services.Supported(ns, f)); err != nil {
			return fmt.Errorf("the kernel's nf_tables cannot do all that IPv%d needs: %w; use the iptables backend", f, err)
		}
	}
	return nil
}
