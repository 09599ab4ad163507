package nft

import (
	"errors"
	"fmt"

	"contiv.dev/vswitch/dataplane/linux/nft/policy"
	"contiv.dev/vswitch/dataplane/linux/nft/services"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Supported is nil if the kernel has all that policy and services use of nf_tables. Nothing is changed: what is needed is asked for in
// transactions that the kernel cannot complete, and so undoes.
func Supported(ns *nsdo.Namespace) error {
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		if err := errors.Join(policy.Supported(ns, f), services.Supported(ns, f)); err != nil {
			return fmt.Errorf("the kernel's nf_tables cannot do all that IPv%d needs: %w; use the iptables backend", f, err)
		}
	}
	return nil
}
