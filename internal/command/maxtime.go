package command

import (
	"math"
	"time"
)

// LongestMaxTime is the greatest maxTimeMS that servers take: 24 days and 20 hours.
const LongestMaxTime = math.MaxInt32 * time.Millisecond

// MaxTimeMS returns a limit as maxTimeMS: at least 1, since 0 would mean no limit, and at most what
// servers take.
func MaxTimeMS(d time.Duration) int64 {
	return max(min(d, LongestMaxTime).Milliseconds(), 1)
}
