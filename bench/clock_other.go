//go:build !unix

package bench

import "time"

var started = time.Now()

// ProcessorTime is wall time where nothing better is known.
func ProcessorTime() time.Duration { return time.Since(started) }
