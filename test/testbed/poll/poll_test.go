package poll

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	n := 0
	if err := Until(t.Context(), time.Millisecond, func() error {
		if n++; n < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || n != 3 {
		t.Errorf("%v after %d attempts", err, n)
	}
	never := errors.New("never")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := Until(ctx, time.Millisecond, func() error { return never }); !errors.Is(err, never) {
		t.Errorf("%v, want the last error", err)
	}
}
