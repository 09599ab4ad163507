package poll

import (
	"context"
	"fmt"
	"time"
)

// Until calls ok once per interval until it returns nil. It returns the last error of ok when the context ends.
func Until(ctx context.Context, every time.Duration, ok func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting: %w", err)
		case <-tick.C:
		}
	}
}
