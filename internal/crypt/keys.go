package crypt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/fle"
	"allium/internal/flight"
)

// Vault finds data keys.
type Vault interface {
	// Keys returns the key documents that match the filter, with majority read concern.
	Keys(ctx context.Context, filter bson.Raw) ([]bson.Raw, error)
}

// Service wraps and unwraps data keys with master keys.
type Service interface {
	// Wrap wraps material with a master key. It returns the master key as it is to be stored.
	Wrap(ctx context.Context, masterKey bson.Raw, material []byte) (stored bson.Raw, wrapped []byte, err error)
	Unwrap(ctx context.Context, masterKey bson.Raw, wrapped []byte) (material []byte, err error)
}

// DefaultKeyExpiration is how long data keys are kept unless the application says otherwise.
const DefaultKeyExpiration = time.Minute

// ErrKeyNotFound is the class of errors that say that the key vault lacks a key.
//
//lint:ignore ST1005 the text is that of other drivers
var ErrKeyNotFound = errors.New(
	"not all keys requested were satisfied. Verify that key vault DB/collection name was correctly specified.")

// name is what a key is asked for by: an id, or an alternative name.
type name struct {
	id  bson.UUID
	alt string // instead of id, if it is not empty
}

func (n name) String() string {
	if n.alt != "" {
		return fmt.Sprintf("key with alternative name %q", n.alt)
	}
	return "key " + n.id.String()
}

// KeyEventKind is what became of data keys.
type KeyEventKind uint8

const (
	KeysFetched KeyEventKind = iota // or not, if there is an error
	KeysCached                      // they were kept, and are used again
	KeysDropped                     // they have expired, or newer ones took their place
)

// KeyEvent tells what became of data keys. It holds their names only.
type KeyEvent struct {
	Kind     KeyEventKind
	Duration time.Duration // of the search
	Err      error
	names    []name
}

// Names returns the ids and alternative names of the keys.
func (e *KeyEvent) Names() []string {
	out := make([]string, len(e.names))
	for i, n := range e.names {
		if out[i] = n.alt; n.alt == "" {
			out[i] = n.id.String()
		}
	}
	return out
}

// Keys keeps the data keys of one key vault. It is safe for concurrent use.
type Keys struct {
	// Observe is told what becomes of keys, if it is not nil. It is set before the first use.
	Observe func(context.Context, KeyEvent)

	vault   Vault
	service Service
	life    time.Duration // 0: keys are kept until Close

	mu       sync.Mutex
	cached   map[name]*cached
	searches map[name]*search // that are under way
	timer    *time.Timer
	closed   bool
	gone     []name // dropped since mu was locked
}

// cached is a key that is kept. Keys.mu guards it, but for key, which lives until the last user has
// let go of it.
type cached struct {
	key      *fle.Key
	id       bson.UUID
	altNames []string
	until    time.Time
	users    int
	dropped  bool
}

// NewKeys returns the keys of a vault. They are dropped, and their material is cleared, when they
// have been kept for life; 0 keeps them until Close.
func NewKeys(vault Vault, service Service, life time.Duration) *Keys {
	return &Keys{vault: vault, service: service, life: life, cached: make(map[name]*cached),
		searches: make(map[name]*search)}
}

// Close drops all keys. Keys that are in use, or are fetched after it, are cleared when they are
// not used any more.
func (k *Keys) Close() {
	k.mu.Lock()
	defer k.unlock()
	k.closed = true
	for _, c := range k.cached {
		k.drop(c)
	}
	if k.timer != nil {
		k.timer.Stop()
	}
}

// unlock unlocks k.mu, and tells of the keys that were dropped.
func (k *Keys) unlock() {
	gone := k.gone
	k.gone = nil
	k.mu.Unlock()
	k.tell(context.Background(), KeyEvent{Kind: KeysDropped, names: gone})
}

func (k *Keys) tell(ctx context.Context, e KeyEvent) {
	if k.Observe != nil && len(e.names) > 0 {
		k.Observe(ctx, e)
	}
}

// drop forgets c. k.mu is held.
func (k *Keys) drop(c *cached) {
	if c.dropped {
		return
	}
	c.dropped = true
	if k.Observe != nil {
		k.gone = append(k.gone, name{id: c.id})
	}
	delete(k.cached, name{id: c.id})
	for _, alt := range c.altNames {
		delete(k.cached, name{alt: alt})
	}
	if c.users == 0 {
		c.key.Clear()
	}
}

// put keeps the key of a document, in place of all that have its id or one of its names. k.mu is
// held.
func (k *Keys) put(d *Document, key *fle.Key) *cached {
	c := &cached{key: key, id: d.ID, altNames: slices.Clone(d.AltNames), until: time.Now().Add(k.life)}
	for i := range c.altNames { // the document's bytes are not kept
		c.altNames[i] = strings.Clone(c.altNames[i])
	}
	names := []name{{id: c.id}}
	for _, alt := range c.altNames {
		names = append(names, name{alt: alt})
	}
	for _, n := range names {
		if old := k.cached[n]; old != nil {
			k.drop(old)
		}
	}
	if k.closed {
		c.dropped = true
		return c
	}
	for _, n := range names {
		k.cached[n] = c
	}
	if k.life > 0 && k.timer == nil {
		k.timer = time.AfterFunc(k.life, k.expire)
	}
	return c
}

// expire runs sweep on the goroutine of a timer.
func (k *Keys) expire() {
	if err := flight.Apart(func() error { k.sweep(); return nil }); err != nil {
		flight.Report(err) // of who is told of the keys: they have been dropped
	}
}

// sweep drops the keys that have been kept long enough.
func (k *Keys) sweep() {
	k.mu.Lock()
	defer k.unlock()
	k.timer = nil
	now := time.Now()
	var next time.Time
	for _, c := range k.cached {
		if !now.Before(c.until) {
			k.drop(c)
		} else if next.IsZero() || c.until.Before(next) {
			next = c.until
		}
	}
	if !next.IsZero() && !k.closed {
		k.timer = time.AfterFunc(next.Sub(now), k.expire)
	}
}

// Held is the keys that one operation uses. They are not cleared before Release.
type Held struct {
	keys *Keys
	held map[name]*cached
}

// Key returns a key that is held by its id, and ByName one by its alternative name, with its id;
// nil if it is not held.
func (h *Held) Key(id bson.UUID) *fle.Key {
	if c := h.held[name{id: id}]; c != nil {
		return c.key
	}
	return nil
}

// ByName is described with Key.
func (h *Held) ByName(alt string) (bson.UUID, *fle.Key) {
	if c := h.held[name{alt: alt}]; c != nil {
		return c.id, c.key
	}
	return bson.UUID{}, nil
}

// Release lets go of the keys.
func (h *Held) Release() {
	h.keys.mu.Lock()
	defer h.keys.mu.Unlock()
	h.release()
}

// release is Release while k.mu is held.
func (h *Held) release() {
	for _, c := range h.held {
		if c.users--; c.users == 0 && c.dropped {
			c.key.Clear()
		}
	}
	h.held = nil
}

// take adds the keys to h that are kept, and returns their names if there is an observer, and those
// of the others. k.mu is held.
func (h *Held) take(wanted []name) (taken, missing []name) {
	now := time.Now()
	for _, n := range wanted {
		if h.held[n] != nil {
			continue
		}
		c := h.keys.cached[n]
		if c != nil && h.keys.life > 0 && !now.Before(c.until) {
			h.keys.drop(c)
			c = nil
		}
		if c == nil {
			missing = append(missing, n)
			continue
		}
		h.add(n, c)
		if h.keys.Observe != nil {
			taken = append(taken, n)
		}
	}
	return taken, missing
}

// add holds c under the name n. Each name counts as a user.
func (h *Held) add(n name, c *cached) {
	if h.held == nil {
		h.held = make(map[name]*cached)
	}
	h.held[n] = c
	c.users++
}
