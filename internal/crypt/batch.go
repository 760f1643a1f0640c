package crypt

import (
	"context"
	"errors"
	"slices"

	"allium/bson"
	"allium/internal/failure"
	"allium/internal/fle"
)

// hopeless reports whether an error says that a value cannot be decrypted, today or later: its key
// is not in the vault, or it is no ciphertext of the key. A key service that does not answer is
// another thing.
func hopeless(err error) bool {
	return slices.ContainsFunc([]error{ErrKeyNotFound, fle.ErrTag, fle.ErrPadding, fle.ErrShort, fle.ErrMalformed,
		fle.ErrObsolete}, func(class error) bool { return errors.Is(err, class) })
}

// decryptBatch decrypts each document of a reply's batch by itself, since one that cannot be
// decrypted must not hide the others. It returns nil, and whole, if the reply has no batch, or if
// it is not a document of the batch that cannot be decrypted.
func (k *Keys) decryptBatch(ctx context.Context, reply bson.Raw, whole error) (bson.Raw, error) {
	cursor, ok := reply.Lookup("cursor").Document()
	if !ok {
		return nil, whole
	}
	sealed := failure.Sealed{}
	start, dst := bson.BeginDocument(make([]byte, 0, len(reply)))
	for key, v := range reply.All() {
		if key != "cursor" {
			dst = bson.AppendRawValue(dst, key, v)
			continue
		}
		var inner int
		inner, dst = bson.BeginDocumentElement(dst, key)
		for key, v := range cursor.All() {
			batch, isArray := v.Array()
			if !isArray || key != "firstBatch" && key != "nextBatch" {
				dst = bson.AppendRawValue(dst, key, v)
				continue
			}
			var list int
			list, dst = bson.BeginArrayElement(dst, key)
			var err error
			if dst, err = k.decryptEach(ctx, dst, batch, sealed); err != nil {
				return nil, err
			}
			dst = bson.EndDocument(dst, list)
		}
		dst = bson.EndDocument(dst, inner)
	}
	if len(sealed) == 0 {
		return nil, whole
	}
	return bson.EndDocument(dst, start), sealed
}

// decryptEach appends the documents of a batch in plain, and those that cannot be decrypted as they
// are, which it adds to sealed. A key that the vault lacks is asked for once.
func (k *Keys) decryptEach(ctx context.Context, dst []byte, batch bson.Raw, sealed failure.Sealed) ([]byte, error) {
	lacking := map[bson.UUID]error{}
	i := 0
	for v := range batch.Values() {
		doc, ok := v.Document()
		if !ok {
			dst = append(bson.AppendIndexHeader(dst, v.Type, i), v.Value...)
			i++
			continue
		}
		ids, err := keysOf(doc)
		for _, id := range ids {
			if err == nil {
				err = lacking[id]
			}
		}
		plain := doc
		if err == nil {
			plain, err = k.decrypt(ctx, doc)
			if errors.Is(err, ErrKeyNotFound) && len(ids) == 1 {
				lacking[ids[0]] = err
			}
		}
		switch {
		case err == nil:
		case hopeless(err):
			sealed[i], plain = err, doc
		default:
			return dst, err
		}
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), plain...)
		i++
	}
	return dst, nil
}

// keysOf returns the keys that the values of a document name at the outside.
func keysOf(doc bson.Raw) (ids []bson.UUID, err error) {
	if !fle.Contains(doc) {
		return nil, nil
	}
	err = fle.Each(doc, func(data []byte) error {
		s, ok, err := fle.ParseSealed(data)
		if err == nil && ok && !slices.Contains(ids, s.KeyID) {
			ids = append(ids, s.KeyID)
		}
		return err
	})
	return ids, err
}
