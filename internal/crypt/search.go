package crypt

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/fle"
	"allium/internal/flight"
)

// searchLimit bounds a search for keys, with all that their key services are asked.
const searchLimit = 2 * time.Minute

// search is a search for keys that is under way. Several goroutines may wait for it, each for some
// of its keys: what one of them wants and there is not is no error of the others. Keys.mu guards
// the fields but for names.
type search struct {
	*flight.Flight[struct{}]
	names  []name
	found  Held           // the keys, which are held for those who wait
	errs   map[name]error // what is wrong with single keys
	takers int            // how many wait
	landed bool
}

// only reports whether the search is for nothing but what is wanted.
func (s *search) only(wanted []name) bool {
	return !slices.ContainsFunc(s.names, func(n name) bool { return !slices.Contains(wanted, n) })
}

// Hold returns the keys with these ids and alternative names. It asks the vault for those that are
// not kept, in one query, and unwraps them at the same time. Of many goroutines that want the same
// key, one asks; the search goes on when that one gives up, and ends when all have.
func (k *Keys) Hold(ctx context.Context, ids []bson.UUID, altNames []string) (*Held, error) {
	wanted := make([]name, 0, len(ids)+len(altNames))
	for _, id := range ids {
		wanted = append(wanted, name{id: id})
	}
	for _, alt := range altNames {
		wanted = append(wanted, name{alt: alt})
	}
	h := &Held{keys: k}
	held := false
	defer func() {
		if !held {
			h.Release() // also if who is told of the keys has panicked
		}
	}()
	if err := h.hold(ctx, wanted); err != nil {
		return nil, err
	}
	held = true
	return h, nil
}

func (h *Held) hold(ctx context.Context, wanted []name) error {
	k := h.keys
	var waiting []*search // that have not been awaited
	defer func() {
		for _, s := range waiting {
			s.Leave()
			k.left(s)
		}
	}()
	for alone, again := false, true; again; {
		var own *search
		k.mu.Lock()
		taken, missing := h.take(wanted)
		own, waiting = k.look(ctx, missing, wanted, alone)
		k.unlock()
		k.tell(ctx, KeyEvent{Kind: KeysCached, names: taken})
		again = false
		for len(waiting) > 0 {
			s := waiting[0]
			waiting = waiting[1:]
			err := h.await(ctx, s, wanted)
			switch {
			case err == nil:
			case s != own && ctx.Err() == nil && flight.Ended(err): // the time of others was up
				again = true
			case s != own && !alone && !s.only(wanted): // perhaps because of what others want
				again, alone = true, true
			default:
				return err
			}
		}
	}
	return nil
}

// look joins the searches for what is missing, or, if alone is set, those that are only for what is
// wanted. For the rest it starts a search, own, which is the first one of searches. k.mu is held.
func (k *Keys) look(ctx context.Context, missing, wanted []name, alone bool) (own *search, searches []*search) {
	var mine []name
	for _, n := range missing {
		s := k.searches[n]
		switch {
		case s != nil && slices.Contains(searches, s), slices.Contains(mine, n):
		case s != nil && (!alone || s.only(wanted)) && s.Join():
			s.takers++
			searches = append(searches, s)
		default:
			mine = append(mine, n)
		}
	}
	if len(mine) == 0 {
		return nil, searches
	}
	own = &search{names: mine, takers: 1, found: Held{keys: k}, errs: make(map[name]error)}
	for _, n := range mine {
		k.searches[n] = own
	}
	own.Flight = flight.Start(ctx, searchLimit, func() { k.land(own) }, func(ctx context.Context) (struct{}, error) {
		began := time.Now()
		err := k.run(ctx, own)
		k.tell(ctx, KeyEvent{Kind: KeysFetched, Duration: time.Since(began), Err: k.outcome(own, err), names: mine})
		return struct{}{}, err
	})
	return own, append([]*search{own}, searches...)
}

// land ends a search: whoever wants one of its keys that is not kept looks again.
func (k *Keys) land(s *search) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.landed = true
	for _, n := range s.names {
		if k.searches[n] == s {
			delete(k.searches, n)
		}
	}
	s.letGo()
}

// left counts one who does not wait any more.
func (k *Keys) left(s *search) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.takers--
	s.letGo()
}

// letGo lets go of the keys when nobody will take any. Keys.mu is held.
func (s *search) letGo() {
	if s.landed && s.takers == 0 {
		s.found.release()
	}
}

// await waits for a search and holds those of its keys that are wanted. The error is that of the
// search, or of the first of those keys that has one.
func (h *Held) await(ctx context.Context, s *search, wanted []name) error {
	_, err := s.Wait(ctx)
	defer h.keys.left(s)
	if err == nil {
		err = h.takeFound(s, wanted)
		flight.InTime(ctx, err)
	}
	return err
}

// takeFound holds those keys of a search that are wanted.
func (h *Held) takeFound(s *search, wanted []name) error {
	h.keys.mu.Lock()
	defer h.keys.mu.Unlock()
	for _, n := range s.names {
		switch c := s.found.held[n]; {
		case !slices.Contains(wanted, n):
		case c == nil:
			return s.errs[n]
		case h.held[n] == nil:
			h.add(n, c)
		}
	}
	return nil
}

// outcome returns the error of a search, or the first of those of its keys.
func (k *Keys) outcome(s *search, err error) error {
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range s.names {
		if s.errs[n] != nil {
			return s.errs[n]
		}
	}
	return nil
}

// run asks the vault for the keys of a search, unwraps and keeps them. The error is one of all of
// them; those of single keys are in s.errs.
func (k *Keys) run(ctx context.Context, s *search) error {
	docs, err := k.vault.Keys(ctx, filter(s.names))
	if err != nil {
		return fmt.Errorf("key vault: %w", err)
	}
	found, malformed, err := parseAll(docs, s.names)
	if err != nil {
		return err
	}
	var used []*Document
	of := make(map[name]int) // which of used
	errs := make(map[name]error)
	for _, n := range s.names {
		i := slices.IndexFunc(found, func(d *Document) bool { return d.is(n) })
		switch {
		case i >= 0 && !slices.Contains(used, found[i]):
			used = append(used, found[i])
			fallthrough
		case i >= 0:
			of[n] = slices.Index(used, found[i])
		case malformed != nil:
			errs[n] = malformed
		default:
			errs[n] = fmt.Errorf("%s: %w", n, ErrKeyNotFound)
		}
	}
	keys, failed := k.unwrap(ctx, used)
	k.mu.Lock()
	defer k.unlock()
	kept := make([]*cached, len(used))
	for i, key := range keys {
		if key != nil {
			kept[i] = k.put(used[i], key)
		}
	}
	for n, i := range of {
		if kept[i] == nil {
			errs[n] = failed[i]
			continue
		}
		s.found.add(n, kept[i])
	}
	s.errs = errs
	s.letGo() // if it has landed without this
	return nil
}

// parseAll reads what the vault has answered. An answer that does not fit the question is an error;
// a document that is not a key's is one of those keys that are missing then.
func parseAll(docs []bson.Raw, names []name) (found []*Document, malformed, err error) {
	for _, doc := range docs {
		d, err := ParseDocument(doc)
		if err != nil {
			malformed = err
			continue
		}
		if !slices.ContainsFunc(names, d.is) {
			return nil, nil, fmt.Errorf("key vault: unexpected key returned: %s", d.ID)
		}
		for _, other := range found {
			if other.ID == d.ID || slices.ContainsFunc(d.AltNames, func(alt string) bool {
				return slices.Contains(other.AltNames, alt)
			}) {
				return nil, nil, fmt.Errorf("key vault: keys returned have duplicate keyAltNames or _id: %s and %s",
					other.ID, d.ID)
			}
		}
		found = append(found, d)
	}
	return found, malformed, nil
}

// unwrap unwraps keys at the same time; each has its error.
func (k *Keys) unwrap(ctx context.Context, docs []*Document) ([]*fle.Key, []error) {
	keys, errs := make([]*fle.Key, len(docs)), make([]error, len(docs))
	var unwrapping sync.WaitGroup
	for i, d := range docs {
		failed := func(err error) { errs[i] = fmt.Errorf("key %s: %w", d.ID, err) }
		flight.Go(&unwrapping, func() {
			material, err := k.service.Unwrap(ctx, d.MasterKey, d.Material)
			if err != nil {
				failed(err)
				return
			}
			defer clear(material)
			if keys[i], err = fle.NewKey(material); err != nil {
				failed(err)
			}
		}, failed)
	}
	unwrapping.Wait()
	return keys, errs
}

// is reports whether d is the key called n.
func (d *Document) is(n name) bool {
	if n.alt != "" {
		return slices.Contains(d.AltNames, n.alt)
	}
	return d.ID == n.id
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
