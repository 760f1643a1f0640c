//go:build race

package bson

const raceEnabled = true
