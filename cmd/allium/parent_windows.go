package main

import (
	"context"
	"os"
)

// awaitEnd returns when the process that was the parent has ended. The number of the parent stays
// the same on Windows, but any process can be waited for.
func awaitEnd(ctx context.Context, parent int) {
	p, err := os.FindProcess(parent)
	if err != nil {
		return // it is gone already
	}
	p.Wait()
}
