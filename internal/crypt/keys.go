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
var ErrKeyNotFound = errors.New("not all keys requested were satisfied. Verify that key vault DB/collection name was correctly specified.")

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

	mu      sync.Mutex
	cached  map[name]*cached
	flights map[name]*flight
	timer   *time.Timer
	closed  bool
	gone    []name // dropped since mu was locked
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

// flight is a search for a key that is under way: others that want the same key wait for it.
type flight struct {
	done chan struct{}
	err  error // once done is closed
}

// NewKeys returns the keys of a vault. They are dropped, and their material is cleared, when they
// have been kept for life; 0 keeps them until Close.
func NewKeys(vault Vault, service Service, life time.Duration) *Keys {
	return &Keys{vault: vault, service: service, life: life, cached: make(map[name]*cached), flights: make(map[name]*flight)}
}

// Close drops all keys. Keys that are in use are cleared when they are not any more.
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
		k.timer = time.AfterFunc(k.life, k.sweep)
	}
	return c
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
		k.timer = time.AfterFunc(next.Sub(now), k.sweep)
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

// Hold returns the keys with these ids and alternative names. It asks the vault for those that are
// not kept, in one query, and unwraps them at the same time. Of many goroutines that want the same
// key, one asks.
func (k *Keys) Hold(ctx context.Context, ids []bson.UUID, altNames []string) (*Held, error) {
	wanted := make([]name, 0, len(ids)+len(altNames))
	for _, id := range ids {
		wanted = append(wanted, name{id: id})
	}
	for _, alt := range altNames {
		wanted = append(wanted, name{alt: alt})
	}
	h := &Held{keys: k}
	if err := h.hold(ctx, wanted); err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

func (h *Held) hold(ctx context.Context, wanted []name) error {
	k := h.keys
	for {
		k.mu.Lock()
		taken, missing := h.take(wanted)
		if len(missing) == 0 {
			k.unlock()
			k.tell(ctx, KeyEvent{Kind: KeysCached, names: taken})
			return nil
		}
		// What others look for already is waited for, after the rest has been looked for here.
		var waits []*flight
		var mine []name
		f := &flight{done: make(chan struct{})}
		for _, n := range missing {
			if other := k.flights[n]; other != nil {
				if other != f && !slices.Contains(waits, other) {
					waits = append(waits, other)
				}
				continue
			}
			k.flights[n] = f
			mine = append(mine, n)
		}
		k.unlock()
		k.tell(ctx, KeyEvent{Kind: KeysCached, names: taken})
		if len(mine) > 0 {
			began := time.Now()
			f.err = h.fetch(ctx, mine)
			k.tell(ctx, KeyEvent{Kind: KeysFetched, Duration: time.Since(began), Err: f.err, names: mine})
			k.mu.Lock()
			for _, n := range mine {
				delete(k.flights, n)
			}
			k.mu.Unlock()
			close(f.done)
			if f.err != nil {
				return f.err
			}
		}
		for _, other := range waits {
			select {
			case <-other.done:
				// The others' time may be up while there is some left here: then the search is made
				// again.
				if other.err != nil && !errors.Is(other.err, context.Canceled) && !errors.Is(other.err, context.DeadlineExceeded) {
					return other.err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if len(waits) == 0 {
			return nil
		}
	}
}

// fetch asks the vault for keys, unwraps, keeps and holds them.
func (h *Held) fetch(ctx context.Context, names []name) error {
	docs, err := h.keys.vault.Keys(ctx, filter(names))
	if err != nil {
		return fmt.Errorf("key vault: %w", err)
	}
	found := make([]*Document, 0, len(docs))
	for _, doc := range docs {
		d, err := ParseDocument(doc)
		if err != nil {
			return err
		}
		found = append(found, d)
	}
	which := func(n name) *Document {
		for _, d := range found {
			if d.is(n) {
				return d
			}
		}
		return nil
	}
	for i, d := range found {
		if !slices.ContainsFunc(names, func(n name) bool { return d.is(n) }) {
			return fmt.Errorf("key vault: unexpected key returned: %s", d.ID)
		}
		for _, other := range found[:i] {
			if other.ID == d.ID || slices.ContainsFunc(d.AltNames, func(alt string) bool { return slices.Contains(other.AltNames, alt) }) {
				return fmt.Errorf("key vault: keys returned have duplicate keyAltNames or _id: %s and %s", other.ID, d.ID)
			}
		}
	}
	var used []*Document
	for _, n := range names {
		d := which(n)
		if d == nil {
			return fmt.Errorf("%s: %w", n, ErrKeyNotFound)
		}
		if !slices.Contains(used, d) {
			used = append(used, d)
		}
	}
	unwrapped := make([]*fle.Key, len(used))
	if err := each(ctx, len(used), func(ctx context.Context, i int) error {
		material, err := h.keys.service.Unwrap(ctx, used[i].MasterKey, used[i].Material)
		if err != nil {
			return fmt.Errorf("key %s: %w", used[i].ID, err)
		}
		defer clear(material)
		unwrapped[i], err = fle.NewKey(material)
		if err != nil {
			return fmt.Errorf("key %s: %w", used[i].ID, err)
		}
		return nil
	}); err != nil {
		for _, key := range unwrapped {
			if key != nil {
				key.Clear()
			}
		}
		return err
	}
	h.keys.mu.Lock()
	defer h.keys.unlock()
	for i, d := range used {
		c := h.keys.put(d, unwrapped[i])
		for _, n := range names {
			if which(n) == d {
				h.add(n, c)
			}
		}
	}
	return nil
}

// is reports whether d is the key called n.
func (d *Document) is(n name) bool {
	if n.alt != "" {
		return slices.Contains(d.AltNames, n.alt)
	}
	return d.ID == n.id
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
	for i := range n {
		wg.Go(func() {
			if err := f(ctx, i); err != nil {
				once.Do(func() { first = err; cancel() })
			}
		})
	}
	wg.Wait()
	return first
}

// filter returns the query for keys, in the specification's form.
func filter(names []name) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	or, dst := bson.BeginArrayElement(dst, "$or")
	for i, field := range []string{"_id", "keyAltNames"} {
		var element, inner, list int
		dst = bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i)
		element, dst = bson.BeginDocument(dst)
		inner, dst = bson.BeginDocumentElement(dst, field)
		list, dst = bson.BeginArrayElement(dst, "$in")
		n := 0
		for _, name := range names {
			if (name.alt != "") != (field == "keyAltNames") {
				continue
			}
			if name.alt != "" {
				dst = bson.AppendIndexHeader(dst, bson.TypeString, n)
				dst = bson.AppendStringValue(dst, name.alt)
			} else {
				dst = bson.AppendIndexHeader(dst, bson.TypeBinary, n)
				dst = bson.AppendBinaryValue(dst, bson.BinaryUUID, name.id[:])
			}
			n++
		}
		dst = bson.EndDocument(dst, list)
		dst = bson.EndDocument(dst, inner)
		dst = bson.EndDocument(dst, element)
	}
	dst = bson.EndDocument(dst, or)
	return bson.EndDocument(dst, start)
}
