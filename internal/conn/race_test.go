//go:build race

package conn

// Under the race detector sync.Pool drops things at random.
func init() { raceEnabled = true }
