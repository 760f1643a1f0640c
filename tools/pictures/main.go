// Command pictures draws the pictures of the documentation from what the driver does:
//
//	go run ./tools/pictures
//
// Each is drawn from a run against mongotest: the messages that an operation logs, the events of a
// pool, the descriptions of a replica set, what is stored of an encrypted field. A run that does
// what a picture does not show is an error. A test compares the files with what is drawn anew.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	all, err := draw(context.Background())
	for name, text := range all {
		if err == nil {
			err = os.WriteFile(filepath.Join("docs", name), []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// draw returns the pictures by the names of their files.
func draw(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for name, picture := range map[string]func() (*drawing, error){
		"picture-operation.svg":  func() (*drawing, error) { return of(ctx, operation, drawOperation) },
		"picture-pool.svg":       func() (*drawing, error) { return of(ctx, pool, drawPool) },
		"picture-topology.svg":   func() (*drawing, error) { return of(ctx, topology, drawTopology) },
		"picture-encryption.svg": func() (*drawing, error) { return of(ctx, encrypted, drawLayers) },
	} {
		d, err := picture()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = d.String()
	}
	return all, nil
}

// of draws what a run has shown.
func of[T any](ctx context.Context, run func(context.Context) (T, error),
	draw func(T) (*drawing, error)) (*drawing, error) {
	shown, err := run(ctx)
	if err != nil {
		return nil, err
	}
	return draw(shown)
}
