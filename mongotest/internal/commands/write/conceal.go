package write

import (
	"allium/bson"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/qe"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Queryable Encryption: what the write of a document adds to the state collections.

// encryptedState returns what the statements of tx on c read, nil if c is not encrypted.
func encryptedState(tx *store.Tx, c *store.Coll) *store.State {
	if c == nil || qe.Of(c.Raw) == nil {
		return nil
	}
	return tx.State()
}

// concealed is what a write of a document in an encrypted collection adds to the state collections.
type concealed struct {
	db        string
	esc, ecoc string
	stored    qe.Stored
}

// conceal returns next, a document that is written in place of old (nil for an insert), as an
// encrypted collection stores it.
func conceal(r *server.Request, tx *store.Tx, c *store.Coll, old, next bson.Raw,
	bypass bool) (bson.Raw, *concealed, error) {
	f := qe.Of(c.Raw)
	if f == nil {
		return next, nil, nil
	}
	if r.EncryptionSchema() == nil {
		if content := next.Lookup(qe.SafeContent); !content.IsZero() && !content.Equal(old.Lookup(qe.SafeContent)) {
			return nil, nil, srverr.New(6666200, "Cannot insert or modify the field %s of an encrypted collection",
				qe.SafeContent)
		}
		if bypass {
			return next, nil, nil
		}
		return next, nil, f.Check(next)
	}
	stored, err := f.Store(server.EncryptionState(tx.State(), c, f, r.Meter()), old, next)
	if err != nil {
		return nil, nil, err
	}
	return stored.Doc, &concealed{db: c.DB, esc: f.ESC, ecoc: f.ECOC, stored: stored}, f.Check(stored.Doc)
}

// write writes to the state collections. It follows the write of the document, so that one that
// fails leaves nothing.
func (p *concealed) write(r *server.Request, tx *store.Tx) error {
	if p == nil {
		return nil
	}
	for _, part := range []struct {
		name string
		docs []bson.Raw
	}{{p.esc, p.stored.ESC}, {p.ecoc, p.stored.ECOC}} {
		if len(part.docs) == 0 {
			continue
		}
		tx.Together()
		c, err := r.Writable(tx, namespace.Join(p.db, part.name), true)
		for _, doc := range part.docs {
			if err == nil {
				c, err = tx.Insert(c, doc)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
