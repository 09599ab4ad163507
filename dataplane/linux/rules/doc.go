// Package rules says what the node's packet filter looks like: it renders endpoints, policies and profiles to the chains, dispatch chains
// and hook rules of package table, for both families alike. It is pure: no kernel, no state except the configuration, equal input gives
// equal output.
//
// What a packet of a workload meets (by Felix's names; Config.ChainPrefix says what the agent's chains begin with):
//
//	raw PREROUTING      own mark bits cleared; came from a workload? reverse path (v6); else untracked host policy
//	mangle PREROUTING   known connections; host policy before DNAT
//	nat PREROUTING      floating IPs
//	filter FORWARD      cali-from-wl-dispatch → cali-fw-<if>; cali-to-wl-dispatch → cali-tw-<if>; accepted? → allow
//	                    (with Config.SharePolicies, behind each: cali-from-wl-policies → cali-fs-<policies>, cali-to-wl-policies → cali-ts-<policies>)
//	filter INPUT        cali-wl-to-host → cali-fw-<if>, then EndpointToHostAction; host endpoints: cali-fh-<if>
//	filter OUTPUT       to own workloads: not filtered; host endpoints: cali-th-<if>
//	nat POSTROUTING     floating IPs' hairpins, masquerading of pools
//
// Everything fails closed. An interface with a workload's prefix that nothing has claimed is dropped at the end of the dispatch chain. A
// rule that cannot be rendered as asked (a set that does not exist or is over its limit, a net that does not parse, an HTTP match) blocks
// more than asked, never less: if it allows, it is left out; if it denies, it loses the match that cannot be had; if it passes to the next
// tier, it drops. Each such rule is reported as a Problem.
package rules
