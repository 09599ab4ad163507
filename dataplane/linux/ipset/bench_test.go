package ipset

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
)

func twoThousand(n *namespace, b *testing.B) *Sets {
	s := n.open(b)
	for i := range 2000 {
		s.Replace(4, table.Set{ID: fmt.Sprint("set-", i), Type: table.SetIP}, numbered(i, i+20))
	}
	apply(b, s)
	return s
}

// BenchmarkOneMemberOf2000Sets adds or removes one member of one set among 2,000.
func BenchmarkOneMemberOf2000Sets(b *testing.B) {
	n := newNS(b)
	s := twoThousand(n, b)
	m := [][]table.Member{numbered(1<<20, 1<<20+1), nil}
	for i := 0; b.Loop(); i++ {
		s.Change(4, "set-77", m[i%2], m[(i+1)%2])
		apply(b, s)
	}
}

// BenchmarkOneMemberOf2000SetsExec does the same with the ipset program.
func BenchmarkOneMemberOf2000SetsExec(b *testing.B) {
	n := newNS(b)
	twoThousand(n, b)
	verb := []string{"add", "del"}
	for i := 0; b.Loop(); i++ {
		n.restore(b, verb[i%2]+" cv40set-77 10.16.0.0\n")
	}
}

func (n *namespace) restore(b *testing.B, input string) {
	err := n.ns.Do(func() error {
		cmd := n.Command(context.Background(), "ipset", "restore")
		cmd.Args, cmd.Path = []string{"ipset", "restore"}, "/usr/sbin/ipset" // without nsenter: the thread is already in the namespace
		cmd.Stdin = bytes.NewReader([]byte(input))
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkCreate2000Sets(b *testing.B) {
	n := newNS(b)
	for b.Loop() {
		s := twoThousand(n, b)
		b.StopTimer()
		n.sh("ipset destroy")
		s.Close()
		b.StartTimer()
	}
}

func BenchmarkCreate2000SetsExec(b *testing.B) {
	n := newNS(b)
	var in bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&in, "create cv40set-%d hash:ip maxelem 1048576\n", i)
		for _, m := range numbered(i, i+20) {
			fmt.Fprintf(&in, "add cv40set-%d %s\n", i, m.Net.Addr())
		}
	}
	for b.Loop() {
		n.restore(b, in.String())
		b.StopTimer()
		n.sh("ipset destroy")
		b.StartTimer()
	}
}

func BenchmarkResync2000Sets(b *testing.B) {
	s := twoThousand(newNS(b), b)
	for b.Loop() {
		s.Resync()
		apply(b, s)
	}
}

func Benchmark100kMembers(b *testing.B) {
	n := newNS(b)
	members := numbered(0, 100_000)
	for b.Loop() {
		s := n.open(b)
		s.Replace(4, table.Set{ID: "big", Type: table.SetIP}, members)
		apply(b, s)
		b.StopTimer()
		n.sh("ipset destroy")
		b.StartTimer()
	}
}

func Benchmark100kMembersExec(b *testing.B) {
	n := newNS(b)
	var in bytes.Buffer
	fmt.Fprintln(&in, "create cv40big hash:ip maxelem 1048576")
	for _, m := range numbered(0, 100_000) {
		fmt.Fprintf(&in, "add cv40big %s\n", m.Net.Addr())
	}
	for b.Loop() {
		n.restore(b, in.String())
		b.StopTimer()
		n.sh("ipset destroy")
		b.StartTimer()
	}
}
