//go:build !windows

package main

import (
	"context"
	"os"
	"time"
)

// awaitEnd returns when the process that was the parent has ended, or the context: an orphan gets
// another parent.
func awaitEnd(ctx context.Context, parent int) {
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for os.Getppid() == parent {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
