// Package bench compares Allium with the official Go driver, side by side in one process.
//
//	go -C bench run ./cmd/compare -run bson
//
// It is a module of its own, so that the official driver is no dependency of Allium.
package bench
