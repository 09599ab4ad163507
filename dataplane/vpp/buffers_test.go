package vpp

import (
	"log/slog"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/lifecycle"
)

func TestParseBuffers(t *testing.T) {
	const head = "Pool Name            Index NUMA  Size  Data Size  Total  Avail  Cached   Used  \n"
	for _, tc := range []struct {
		text        string
		total, free int64
	}{
		{head + "default-numa-0         0     0   2496     2048    16800  16163    73      564\n", 16800, 16236},
		{head + "default-numa-0  0 0 2496 2048 16800 16163 73 564\ndefault-numa-1  1 1 2496 2048 8400 10 5 8385\n", 8400, 15},
		{"", 0, 0},
		{"unknown command", 0, 0},
		{head + "default-numa-0 0 0 2496 2048 x y z\n", 0, 0},
	} {
		if total, free := parseBuffers(tc.text); total != tc.total || free != tc.free {
			t.Errorf("%q: %d free of %d, want %d of %d", tc.text, free, total, tc.free, tc.total)
		}
	}
}

func TestBuffersOfRealVPP(t *testing.T) {
	v := vpptest.Start(t, vpptest.Options{Buffers: 8192, FewPlugins: []string{}})
	log := slog.New(slog.DiscardHandler)
	jobs := lifecycle.NewGroup(t.Context(), log)
	c := conn.New(conn.Config{Socket: v.Socket()}, log)
	c.Start(jobs)
	defer func() { c.Close(); _ = jobs.Stop(time.Second) }()
	b := NewBuffers(c, log)
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		b.readUsage(t.Context())
		if total, free := b.Counts(); total > 0 {
			if total < 1024 || free == 0 || free > total || b.Low() != nil {
				t.Errorf("%d free of %d, %v; want most of them free", free, total, b.Low())
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("nothing is known of the buffers")
		}
	}
}
