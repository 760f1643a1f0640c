package crypt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"allium/bson"
	"allium/internal/fle"
)

// Encrypt returns doc with every placeholder in it encrypted. Random bytes are read from random.
// doc must be valid.
func (k *Keys) Encrypt(ctx context.Context, doc bson.Raw, random io.Reader) (bson.Raw, error) {
	var ids []bson.UUID
	var names []string
	addID := func(id bson.UUID) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	var orders []order // in the order of doc
	if err := fle.Each(doc, func(data []byte) error {
		switch fle.Kind(data[0]) {
		case fle.KindMarking:
			m, err := fle.ParseMarking(data)
			if err != nil {
				return err
			}
			if m.KeyAltName == "" {
				addID(m.KeyID)
			} else if !slices.Contains(names, m.KeyAltName) {
				names = append(names, m.KeyAltName)
			}
			orders = append(orders, order{marking: m})
		case fle.KindPlaceholder:
			p, err := fle.ParsePlaceholder(data)
			if err != nil {
				return err
			}
			addID(p.IndexKey)
			addID(p.UserKey)
			orders = append(orders, order{placeholder: p})
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if len(orders) == 0 {
		return doc, nil
	}
	held, err := k.Hold(ctx, ids, names)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	return fle.Replace(make([]byte, 0, 2*len(doc)), doc, func(data []byte) (bson.RawValue, bool, error) {
		if kind := fle.Kind(data[0]); kind != fle.KindMarking && kind != fle.KindPlaceholder {
			return bson.RawValue{}, false, nil
		}
		sealed, err := orders[0].seal(held, random)
		orders = orders[1:]
		if err != nil {
			return bson.RawValue{}, false, err
		}
		return fle.Value(sealed), true, nil
	})
}

// order is a value that is to be encrypted, one of both.
type order struct {
	marking     *fle.Marking
	placeholder *fle.Placeholder
}

func (o *order) seal(held *Held, random io.Reader) ([]byte, error) {
	if p := o.placeholder; p != nil {
		return p.Seal(held.Key(p.IndexKey), held.Key(p.UserKey), random)
	}
	m := o.marking
	if m.KeyAltName == "" {
		return m.Seal(m.KeyID, held.Key(m.KeyID), random)
	}
	id, key := held.ByName(m.KeyAltName)
	return m.Seal(id, key, random)
}

// Decrypt returns doc with every value in it decrypted that can be: doc itself if there is none.
// doc must be valid if it contains a binary of subtype 6. If doc is a reply with a batch of which
// some documents cannot be decrypted, the error beside it is a failure.Sealed.
func (k *Keys) Decrypt(ctx context.Context, doc bson.Raw) (bson.Raw, error) {
	out, err := k.decrypt(ctx, doc)
	if hopeless(err) {
		return k.decryptBatch(ctx, doc, err)
	}
	return out, err
}

func (k *Keys) decrypt(ctx context.Context, doc bson.Raw) (bson.Raw, error) {
	if !fle.Contains(doc) {
		return doc, nil
	}
	if err := doc.Validate(); err != nil {
		return nil, err
	}
	// Values with an index have two layers. The first tells which key the second needs.
	var outer, all []bson.UUID
	add := func(list *[]bson.UUID, id bson.UUID) {
		if !slices.Contains(*list, id) {
			*list = append(*list, id)
		}
	}
	if err := fle.Each(doc, func(data []byte) error {
		s, ok, err := fle.ParseSealed(data)
		if err != nil || !ok {
			return err
		}
		add(&all, s.KeyID)
		if s.Indexed() {
			add(&outer, s.KeyID)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return doc, nil
	}
	held, err := k.Hold(ctx, all, nil)
	if err != nil {
		return nil, err
	}
	defer func() { held.Release() }()
	if len(outer) > 0 {
		before := len(all)
		if err := fle.Each(doc, func(data []byte) error {
			s, ok, err := fle.ParseSealed(data)
			if err != nil || !ok || !s.Indexed() {
				return err
			}
			inner, err := s.Inner(held.Key(s.KeyID))
			if err != nil {
				return err
			}
			add(&all, inner.KeyID)
			return nil
		}); err != nil {
			return nil, err
		}
		if len(all) > before {
			more, err := k.Hold(ctx, all, nil)
			if err != nil {
				return nil, err
			}
			held.Release()
			held = more
		}
	}
	return fle.Replace(make([]byte, 0, len(doc)), doc, func(data []byte) (bson.RawValue, bool, error) {
		s, ok, err := fle.ParseSealed(data)
		if err != nil || !ok {
			return bson.RawValue{}, false, err
		}
		if s.Indexed() {
			if s, err = s.Inner(held.Key(s.KeyID)); err != nil {
				return bson.RawValue{}, false, err
			}
		}
		v, err := s.Open(held.Key(s.KeyID))
		return v, err == nil, err
	})
}

// Key names the key of an explicit encryption: by id, or by alternative name.
type Key struct {
	ID      *bson.UUID
	AltName string
}

// held holds one key.
func (k *Keys) held(ctx context.Context, key Key) (*Held, bson.UUID, error) {
	switch {
	case key.AltName == "" && key.ID == nil:
		return nil, bson.UUID{}, errors.New("either key id or key alt name required")
	case key.AltName != "" && key.ID != nil:
		return nil, bson.UUID{}, errors.New("cannot have both key id and key alt name")
	case key.AltName == "":
		h, err := k.Hold(ctx, []bson.UUID{*key.ID}, nil)
		return h, *key.ID, err
	}
	h, err := k.Hold(ctx, nil, []string{key.AltName})
	if err != nil {
		return nil, bson.UUID{}, err
	}
	id, _ := h.ByName(key.AltName)
	return h, id, nil
}

// of returns the key that was held for key.
func (h *Held) of(key Key) *fle.Key {
	if key.AltName == "" {
		return h.Key(*key.ID)
	}
	_, found := h.ByName(key.AltName)
	return found
}

// EncryptValue encrypts one value as an application says.
func (k *Keys) EncryptValue(ctx context.Context, v bson.RawValue, o *fle.Explicit, key Key,
	random io.Reader) (bson.RawValue, error) {
	// What is wrong with the options is told before any key is looked for.
	order, err := o.Order(v)
	if err != nil {
		return bson.RawValue{}, err
	}
	held, id, err := k.held(ctx, key)
	if err != nil {
		return bson.RawValue{}, err
	}
	defer held.Release()
	sealed, err := order.Seal(id, held.of(key), random)
	if err != nil {
		return bson.RawValue{}, err
	}
	return fle.Value(sealed), nil
}

// EncryptExpression encrypts the bounds of a range query as an application says.
func (k *Keys) EncryptExpression(ctx context.Context, expr bson.Raw, o *fle.Explicit, key Key, payload int32,
	random io.Reader) (bson.Raw, error) {
	if _, err := o.Expression(expr, bson.UUID{}, bson.UUID{}, 0); err != nil {
		return nil, err
	}
	held, id, err := k.held(ctx, key)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	doc, err := o.Expression(expr, id, id, payload)
	if err != nil {
		return nil, err
	}
	return k.Encrypt(ctx, doc, random)
}

// DecryptValue decrypts one value.
func (k *Keys) DecryptValue(ctx context.Context, v bson.RawValue) (bson.RawValue, error) {
	data, ok := fle.Data(v)
	if !ok {
		return bson.RawValue{}, fmt.Errorf("%w: not a binary of subtype 6", fle.ErrMalformed)
	}
	if _, ok, err := fle.ParseSealed(data); err != nil {
		return bson.RawValue{}, err
	} else if !ok {
		return bson.RawValue{}, fmt.Errorf("%w: a %s cannot be decrypted", fle.ErrMalformed, fle.Kind(data[0]))
	}
	start, doc := bson.BeginDocument(nil)
	doc = bson.EndDocument(bson.AppendRawValue(doc, "v", v), start)
	out, err := k.Decrypt(ctx, doc)
	if err != nil {
		return bson.RawValue{}, plain(err)
	}
	return out.Lookup("v"), nil
}

// plain takes the path off an error about a document that the application did not see.
func plain(err error) error {
	var p *fle.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
