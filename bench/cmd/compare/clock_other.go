//go:build !unix

package main

import "time"

// processorTime is wall time where nothing better is known.
func processorTime() time.Duration { return wallTime() }
