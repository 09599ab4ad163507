package atonce

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const limit = 3

func TestMain(m *testing.M) {
	Limit(limit)
	os.Exit(m.Run())
}

// TestLimit checks that, of six tests, three run at the same time, and never four.
func TestLimit(t *testing.T) {
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.parallel") }) {
		t.Skip("the command line has another limit")
	}
	var (
		mu        sync.Mutex
		now, most int
	)
	reached := make(chan struct{})
	t.Run("group", func(t *testing.T) {
		for range 2 * limit {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				mu.Lock()
				now++
				most = max(most, now)
				if now == limit {
					select {
					case <-reached:
					default:
						close(reached)
					}
				}
				mu.Unlock()
				select {
				case <-reached:
					<-time.After(50 * time.Millisecond) // time in which one more test would begin
				case <-time.After(10 * time.Second):
					t.Errorf("%d tests do not run side by side", limit)
				}
				mu.Lock()
				now--
				mu.Unlock()
			})
		}
	})
	if most != limit {
		t.Errorf("%d tests ran side by side, want %d", most, limit)
	}
}
