package crypt

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/fle"
	"allium/internal/flight"
)

// NewDocument makes a data key: of the given material, or of a new one if it is nil.
func (k *Keys) NewDocument(ctx context.Context, masterKey bson.Raw, altNames []string, material []byte,
	random io.Reader) (*Document, error) {
	switch len(material) {
	case fle.KeySize:
	case 0:
		material = make([]byte, fle.KeySize)
		defer clear(material)
		if _, err := io.ReadFull(random, material); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("keyMaterial should have length %d, but has length %d", fle.KeySize, len(material))
	}
	d := &Document{AltNames: slices.Sorted(slices.Values(altNames))}
	for i, alt := range d.AltNames {
		if alt == "" {
			return nil, fmt.Errorf("an alternative name is empty")
		}
		if i > 0 && d.AltNames[i-1] == alt {
			return nil, fmt.Errorf("duplicate keyAltNames found: %q", alt)
		}
	}
	var err error
	if d.MasterKey, d.Material, err = k.service.Wrap(ctx, masterKey, material); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(random, d.ID[:]); err != nil {
		return nil, err
	}
	d.ID[6] = d.ID[6]&0x0f | 0x40 // version 4
	d.ID[8] = d.ID[8]&0x3f | 0x80
	d.Created = time.Now().Truncate(time.Millisecond)
	d.Updated = d.Created
	return d, nil
}

// Rewrapped is a data key that is wrapped with another master key, or newly with the same.
type Rewrapped struct {
	ID        bson.UUID
	MasterKey bson.Raw
	Material  []byte
}

// Rewrap wraps the data keys of docs again: with masterKey, or each with its own if that is nil.
// All or none are.
func (k *Keys) Rewrap(ctx context.Context, docs []bson.Raw, masterKey bson.Raw) ([]Rewrapped, error) {
	parsed := make([]*Document, len(docs))
	for i, doc := range docs {
		var err error
		if parsed[i], err = ParseDocument(doc); err != nil {
			return nil, err
		}
	}
	out := make([]Rewrapped, len(docs))
	err := each(ctx, len(docs), func(ctx context.Context, i int) error {
		d := parsed[i]
		material, err := k.service.Unwrap(ctx, d.MasterKey, d.Material)
		if err != nil {
			return fmt.Errorf("key %s: %w", d.ID, err)
		}
		defer clear(material)
		to := masterKey
		if to == nil {
			to = d.MasterKey
		}
		out[i].ID = d.ID
		if out[i].MasterKey, out[i].Material, err = k.service.Wrap(ctx, to, material); err != nil {
			return fmt.Errorf("key %s: %w", d.ID, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// each calls f for 0 to n-1 at the same time and returns the first error; the context of the others
// ends then.
func each(ctx context.Context, n int, f func(context.Context, int) error) error {
	if n == 1 {
		return f(ctx, 0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	failed := func(err error) { once.Do(func() { first = err; cancel() }) }
	for i := range n {
		flight.Go(&wg, func() {
			if err := f(ctx, i); err != nil {
				failed(err)
			}
		}, failed)
	}
	wg.Wait()
	return first
}
