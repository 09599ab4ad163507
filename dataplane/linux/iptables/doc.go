// Package iptables is the table.Backend that programs iptables, in either variant (legacy, nft). It runs iptables-save and
// iptables-restore; the package ipset programs sets over netlink.
//
// # From the model to rules
//
// The lowerer (lower.go, conditions.go, actions.go, dispatch.go) translates a chain of the model to iptables. It has no side effects. A chain
// becomes one piece, and sometimes helpers:
//
//   - a rule with one list (of prefixes, of more ports than fit, …) and one action that may run twice becomes one rule for
//     each of the list's alternatives;
//   - other rules with lists are preceded by rules that leave a scratch mark bit set if all lists hold;
//   - several actions become several rules, or, if the first would change the result of the conditions, a helper chain;
//   - a dispatch chain becomes a tree by the first character in which names differ.
//
// # What is written
//
// A layer (layer.go) is one table in one family. Its plan (plan.go) has the chains that its hooks refer to, directly or indirectly; other
// chains are not programmed. Each rule has a hash as its first comment. The hash covers the rule, its chain and all rules before, so that
// the kernel's rules can be compared without parsing them (kernelstate.go), and a restarted agent writes nothing. One iptables-restore
// --noflush for each table that differs writes all changes, all or nothing (restore.go). Unlike Felix, a write is not preceded by an
// iptables-save: changed chains are rewritten completely, which does not depend on the kernel's state. The kernel's rules are read after a
// failed write, before writes that depend on positions (the hooks, long chains), and for checks after a write and at intervals (checks.go).
// The checks repair changes by other programs, including rules inserted above ours.
//
// # Failures
//
// A failed write is retried for about a second (converge.go). If the input causes the failure, the chain that the kernel rejects is
// found (isolate.go), reported in Result.Broken and replaced by a chain that drops everything, or in the nat layer does nothing; all other
// chains are written. The same applies to chains that cannot be expressed in iptables, that refer to missing chains or sets, or that form a
// loop. A hook that cannot be programmed remains unchanged.
//
// # Ownership
//
// Our chains are those whose names have one of Config.ChainPrefixes, or all of whose rules have our hashes (no chain of ours is empty). Our
// rules in the kernel's own chains are those that have a hash or jump to such chains. Nothing else is changed. If an earlier process used
// the other variant, its objects there are removed once ours are in place. To uninstall, call Apply once on a Backend with nothing desired:
// it removes all of our objects.
package iptables
