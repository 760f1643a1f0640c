//go:build race

package allium_test

func init() { raceEnabled = true }
