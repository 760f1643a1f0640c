//go:build !unix

package bench

import "time"

var started = time.Now()

// processorTime is wall time where nothing better is known.
func processorTime() time.Duration { return time.Since(started) }
