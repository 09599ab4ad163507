// Package rules renders the rules of the node's packet filter: it translates endpoints, policies and profiles to the chains, dispatch chains
// and hook rules of package table, for both families alike. It has no side effects and no state except the configuration: equal input gives
// equal output.
//
// The chains that a packet of a workload passes (by Felix's names; Config.ChainPrefix replaces the prefix "cali-"):
//
//	raw PREROUTING      clears our mark bits; packets of workloads: reverse path check (both families); others: untracked host policy
//	mangle PREROUTING   known connections; host policy before DNAT
//	nat PREROUTING      floating IPs
//	filter FORWARD      cali-from-wl-dispatch → cali-fw-<if>; cali-to-wl-dispatch → cali-tw-<if>; accepted? → allow
//	                    (with Config.SharePolicies, after each: cali-from-wl-policies → cali-fs-<policies>, cali-to-wl-policies → cali-ts-<policies>)
//	filter INPUT        cali-wl-to-host → cali-fw-<if>, then EndpointToHostAction; host endpoints: cali-fh-<if>
//	filter OUTPUT       to own workloads: not filtered; host endpoints: cali-th-<if>
//	nat POSTROUTING     hairpins of floating IPs, masquerading of pools
//
// Everything fails closed. The end of the dispatch chain drops packets of an interface that has a workload's prefix but no endpoint. A rule
// that cannot be rendered exactly (a set that does not exist or is over its limit, an invalid prefix, an HTTP match) blocks more than
// specified, never less: an allow rule is left out, a deny rule loses the match that is not available, and a rule that passes to the next
// tier drops. Each such rule is reported as a Problem.
package rules
