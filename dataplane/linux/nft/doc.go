// Package nft is a table.Backend on the kernel's nf_tables. It speaks netlink itself, without the nft tool and without a library: what an
// Apply changes is one transaction over sets, maps, chains and rules of both families, which packets see all at once or not at all, and
// which the kernel acknowledges once.
//
// There are two tables, `ip contiv` and `ip6 contiv`. Names in them:
//
//	hook-filter-forward     the base chain of a hook, with iptables' priorities; holds the hook's rules
//	filter-cali-fw-cali1    a chain of a layer
//	map-filter-cali-from-wl the verdict map of a dispatch chain, interface → chain
//	set-s/abc               the set s:abc; nets as intervals that do not overlap (trie.go)
//	list-3f2a…              a long list of nets or ports that rules have in common (choice.go)
//
// How it works, file by file:
//
//	backend.go             what the caller sees; Apply = sync, resolve, plan, transact
//	link.go, events.go, audit.go
//	                       sync: what the kernel has. The number of its generation, which every transaction of any program
//	                       raises, says whether another program wrote; events say whether that was about our tables. Only if
//	                       so, and at the start, and on Resync after own changes, the tables are read (list.go)
//	model.go, resolve.go   resolve: which chains are broken, which ones packets can get to (only those are programmed). Looks
//	                       at what changed and what that leads to, not at everything
//	compile.go, choice.go, action.go, expr.go, span.go
//	                       rules to the kernel's expressions
//	set.go, trie.go, lists.go
//	                       members of sets, and how the kernel's differ
//	plan.go, write.go      plan: the difference; in which order it is written
//	isolate.go             what to blame when the kernel refuses something
//	batch.go, conn.go, buffer.go
//	                       transactions and the codec. Every message has an object to blame by its sequence number
//
// A transaction says for which generation it is, so that it never meets other objects than those it was made for. When the kernel refuses
// it, the objects that are to blame become broken, which is reported, and the rest is tried again in the same Apply. A broken chain drops
// everything; a chain that needs a broken set is broken too. Every rule carries a hash of what it does in its user data: that is how a
// restart finds that nothing has to be written.
//
// Services are apart from all this, in their own tables: services.go and the files whose names begin so. They share the sockets: the kernel
// takes a third longer for a large transaction of which it has to inform any listener, even ourselves.
//
// The owner flag of tables is not used, because the rules have to survive the process.
package nft
