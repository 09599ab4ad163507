package forward

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// The chain of iptables-nft, which ip and ip6 have.
const (
	filterTable  = "filter"
	forwardChain = "FORWARD"
)

// Options configure a Passage.
type Options struct {
	NS  *nsdo.Namespace // nil: that of the process
	Log *slog.Logger
	// Beside is another view of the same goroutine and namespace whose sockets are shared; nil: none.
	Beside *wire.View
	// OnlyIPv4 leaves the chain of IPv6 without our rules: our tables do not filter IPv6.
	OnlyIPv4 bool
	// Append adds the rules after the other rules of the chain; otherwise they come first.
	Append bool
}

// Passage maintains the rules in other programs' chains. It is used by one goroutine.
type Passage struct {
	view     *wire.View
	log      *slog.Logger
	append   bool
	programs []wire.Program
	links    []string
	families [2]*family
	failed   error     // the kernel has rejected the rules
	tried    time.Time // the last attempt
	warned   string
}

// family is the chain FORWARD of one address family, as last read.
type family struct {
	wire.Family
	unfiltered bool // our tables do not filter the family
	drops      bool // the chain exists, and its policy is to drop
	ours       []rule
}

// rule is a rule of ours in the kernel.
type rule struct {
	handle uint64
	hash   wire.Hash
}

var _ wire.Object = (*family)(nil)

// Key implements wire.Object.
func (f *family) Key() string { return fmt.Sprintf("chain v%d %s %s", f.ID, filterTable, forwardChain) }

// Fail implements wire.Object: the error of the transaction has all that is needed.
func (f *family) Fail(error) {}

// Failed implements wire.Object.
func (f *family) Failed() bool { return false }

// Touch implements wire.Object.
func (f *family) Touch() {}

// Open opens the tables of iptables-nft. Nothing is read or written before the first Apply. Without links, Apply removes the rules.
func Open(opts Options) (*Passage, error) {
	v, err := wire.Open(opts.NS, nil, filterTable, opts.Beside) // without a log: other programs write to this table
	if err != nil {
		return nil, err
	}
	p := &Passage{view: v, log: opts.Log, append: opts.Append}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	for i, id := range []table.Family{table.IPv4, table.IPv6} {
		p.families[i] = &family{Family: wire.FamilyOf(id), unfiltered: id == table.IPv6 && opts.OnlyIPv4}
	}
	return p, nil
}

// Name implements the driver's interface of leftovers.
func (p *Passage) Name() string { return "rules in FORWARD of iptables-nft" }

// Close closes the sockets. The rules remain.
func (p *Passage) Close() error {
	p.view.Close()
	return nil
}

// Resync makes the next Apply compare the rules with the kernel.
func (p *Passage) Resync() { p.view.Invalidate() }

// SetLinks sets the links whose packets may pass; a name with a trailing '+' stands for all links whose names begin with the text before it.
func (p *Passage) SetLinks(links ...string) {
	p.links, p.programs = links, nil
	for _, link := range links {
		p.programs = append(p.programs, accept(unix.NFT_META_IIFNAME, link), accept(unix.NFT_META_OIFNAME, link))
	}
	p.view.Invalidate()
}

// accept returns the rule that accepts packets from or to a link, in the form that iptables-nft writes and shows as -i or -o.
func accept(key uint32, link string) wire.Program {
	var e wire.Exprs
	e.Meta(key, wire.Reg1)
	if prefix, several := strings.CutSuffix(link, "+"); several {
		e.Equal([]byte(prefix), false)
	} else {
		name := make([]byte, unix.IFNAMSIZ)
		copy(name, link)
		e.Equal(name, false)
	}
	e.Simple("counter")
	e.ImmediateVerdict(wire.CodeAccept, "")
	p := wire.Program{Exprs: e.B, Hash: hashOf(key, link)}
	p.Udata = wire.AppendUserData(nil, "contiv: pods' packets pass, table contiv filters them", p.Hash)
	return p
}

// mark begins the hashes of our rules.
const mark = "ctvfwd1:"

func hashOf(key uint32, link string) (h wire.Hash) {
	sum := fnv.New64a()
	fmt.Fprint(sum, key, " ", link)
	copy(h[:], sum.Sum([]byte(mark)))
	return h
}

func isOurs(h wire.Hash) bool { return strings.HasPrefix(string(h[:]), mark) }

// Apply adds the rules where they are needed and removes them elsewhere. If no other program has changed the chain, it costs one request.
func (p *Passage) Apply(ctx context.Context) (res table.Result) {
	if p.failed == nil || p.view.Pending() || time.Since(p.tried) > wire.RetryAfter {
		p.tried = time.Now()
		res.Writes, p.failed = p.try(ctx)
	}
	if p.failed != nil {
		what := fmt.Sprintf("chains %s of iptables", forwardChain)
		res.Broken = map[string]error{what: fmt.Errorf("they may drop packets of pods: %w", p.failed)}
	}
	return res
}

func (p *Passage) try(ctx context.Context) (writes int, err error) {
	for range wire.MaxAttempts {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		writes, err = p.attempt()
		var refused *wire.Refusal
		if err == nil || errors.As(err, &refused) || !p.view.Again(err) {
			break
		}
	}
	return writes, err
}

func (p *Passage) attempt() (writes int, err error) {
	if err := p.view.Connect(); err != nil {
		return 0, err
	}
	if err := p.view.Sync(p.load); err != nil {
		return 0, err
	}
	t := p.view.NewBatch()
	for _, f := range p.families {
		p.write(t, f)
	}
	if t.Empty() {
		return 0, nil
	}
	if err := p.view.Commit(t); err != nil {
		return 0, err
	}
	p.view.Invalidate() // the handles of the new rules are not known yet
	p.log.Info("changed the rules that let packets of pods pass other programs' firewall", "chain", forwardChain, "links", p.links,
		"rules", t.Writes)
	return t.Writes, nil
}

// load reads the chains and our rules in them.
func (p *Passage) load() error {
	for _, f := range p.families {
		f.drops, f.ours = false, nil
		l := p.view.Lister(f.Proto)
		chain, found, err := l.Chain(forwardChain)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		f.drops = chain.Hook && chain.Hooknum == unix.NF_INET_FORWARD && chain.Drops
		err = l.Rules(forwardChain, func(r wire.Rule) {
			if h := wire.HashOf(r.UserData); isOurs(h) {
				f.ours = append(f.ours, rule{r.Handle, h})
			}
		})
		if err != nil {
			return err
		}
	}
	return p.warn()
}

// write adds the family's differences to the transaction.
func (p *Passage) write(t *wire.Batch, f *family) {
	missing := map[wire.Hash]bool{}
	if f.drops && !f.unfiltered {
		for i := range p.programs {
			missing[p.programs[i].Hash] = true
		}
	}
	for _, r := range f.ours {
		if !missing[r.hash] {
			t.DelRule(f.Proto, forwardChain, r.handle, f)
		}
		delete(missing, r.hash)
	}
	for i := range p.programs {
		switch one := &p.programs[i]; {
		case !missing[one.Hash]:
		case p.append:
			t.NewRule(f.Proto, forwardChain, one, f)
		default:
			t.InsertRule(f.Proto, forwardChain, one, f)
		}
	}
}

// warn logs which chains of the family inet drop forwarded packets by their policy. An administrator has written them, and only the
// administrator can know where our packets should be accepted.
func (p *Passage) warn() error {
	if len(p.links) == 0 {
		return nil
	}
	text := ""
	err := wire.ChainsOf(p.view.Cmd, unix.NFPROTO_INET, func(name string, c wire.Chain) {
		if !c.Hook || c.Hooknum != unix.NF_INET_FORWARD || c.Type != "filter" || !c.Drops {
			return
		}
		for _, link := range p.links {
			wildcard := strings.TrimSuffix(link, "+")
			if wildcard != link {
				wildcard += "*"
			}
			text += fmt.Sprintf("nft 'insert rule inet %s %s iifname \"%s\" accept; insert rule inet %[1]s %[2]s oifname \"%[3]s\" accept'\n",
				name, c.Name, wildcard)
		}
	})
	if err != nil {
		return err
	}
	if text != "" && text != p.warned {
		p.log.Warn("another program's nf_tables chain drops forwarded packets by its policy: unless its rules accept those of pods, pods reach only "+
			"their node", "commands", text)
	}
	p.warned = text
	return nil
}
