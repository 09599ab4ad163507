// Package iptables is the table.Backend for hosts whose rules are iptables', in either variant (legacy, nft). It runs iptables-save and
// iptables-restore; sets are programmed over netlink by the sub-package ipset next door.
//
// # From the model to rules
//
// The lowerer (lower.go, conditions.go, actions.go, dispatch.go) says a chain of the model in the words of iptables. It is pure. A chain
// becomes one piece, and sometimes helpers:
//
//   - a rule with one list (of nets, of more ports than fit, …) and one action that may be met twice becomes one rule for
//     each of the list's alternatives;
//   - other rules with lists are preceded by rules that leave a scratch mark bit set if all lists hold;
//   - several actions become several rules, or, where the first would change what the conditions see, a helper chain;
//   - a dispatch chain becomes a tree by the first character in which names differ.
//
// # What is written
//
// A layer (layer.go) is one table in one family. Its plan (plan.go) has the chains that its hooks lead to; others are not programmed. Each
// rule carries a hash as its first comment that stands for the rule, its chain and all rules before, so that the kernel's rules are
// compared without being understood (kernelstate.go), and a restarted agent writes nothing. One iptables-restore --noflush for each table
// that differs makes it right (restore.go), all or nothing. Unlike Felix, a write is not preceded by an iptables-save: changed chains are
// rewritten whole, which does not depend on what is there. The kernel is read when a write fails, before positions matter (the hooks, long
// chains), and for checks after a write and at intervals (checks.go), which repair what another program has changed, also when they have
// put a rule above ours.
//
// # What goes wrong
//
// A failed write is tried again for about a second (converge.go). If it is the input's fault, the chain that the kernel does not take is
// found (isolate.go), reported in Result.Broken and replaced by one that drops everything, or in the nat layer does nothing; all others are
// written. The same goes for chains that cannot be said in iptables at all, that lead to chains or need sets which there are not, or back
// to themselves. A hook that cannot be programmed stays as it is.
//
// # Ownership
//
// Ours are chains whose names have one of Config.ChainPrefixes, or all of whose rules have our hashes (no chain of ours is empty), and in
// the kernel's own chains the rules that have one or lead to such chains. Nothing else is touched. When an earlier process used the other
// variant, what it has left there is removed once ours is in place. A Backend with nothing desired whose Apply is called once removes all
// that is ours: that is how to uninstall.
package iptables
