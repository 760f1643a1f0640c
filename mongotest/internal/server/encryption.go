package server

import (
	"slices"

	"allium/bson"
	"allium/internal/fle"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/qe"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Queryable Encryption: what package qe works out is read and written here.

// encryption returns the schema of a request with encryptionInformation, by namespace, nil for one
// without.
func (r *Request) encryption() bson.Raw {
	v := r.Body.Lookup("encryptionInformation")
	if v.IsZero() {
		v = r.Body.Lookup("nsInfo", "0", "encryptionInformation")
	}
	doc, _ := v.Document()
	schema, _ := doc.Lookup("schema").Document()
	return schema
}

// rewriter returns what turns the payloads of the request's queries into conditions on tags, nil if
// it may have none.
func (r *Request) rewriter(st *store.State) *qe.Rewriter {
	schema := r.encryption()
	if schema == nil {
		return nil
	}
	w := &qe.Rewriter{}
	for ns := range schema.All() {
		c := st.Coll(ns)
		if c == nil {
			continue
		}
		if f := qe.Of(c.Raw); f != nil {
			w.Sources = append(w.Sources, qe.Source{Fields: f, State: escOf(st, c, f)})
		}
	}
	return w
}

// escOf returns the ESC collection of c.
func escOf(st *store.State, c *store.Coll, f *qe.Fields) qe.State {
	esc := st.Coll(namespace.Join(c.DB, f.ESC))
	return func(id fle.Token) (bson.Raw, bool) {
		if esc == nil {
			return nil, false
		}
		_, doc, ok := esc.ByID(qe.ID(id))
		return doc, ok
	}
}

// RevealFilter returns a filter of the request without payloads. st is what the request reads, nil
// for what it reads by itself.
func (r *Request) RevealFilter(st *store.State, filter bson.Raw) (bson.Raw, error) {
	if !fle.Contains(filter) || r.encryption() == nil {
		return filter, nil
	}
	if st == nil {
		var err error
		if st, err = r.Snapshot(); err != nil {
			return nil, err
		}
	}
	return r.rewriter(st).Filter(filter)
}

// encryptedState returns what the statements of tx on c read, nil if c is not encrypted.
func encryptedState(tx *store.Tx, c *store.Coll) *store.State {
	if c == nil || qe.Of(c.Raw) == nil {
		return nil
	}
	return tx.State()
}

// RevealStages is RevealFilter for a pipeline.
func (r *Request) RevealStages(st *store.State, stages []bson.Raw) ([]bson.Raw, error) {
	if !slices.ContainsFunc(stages, fle.Contains) || r.encryption() == nil {
		return stages, nil
	}
	return r.rewriter(st).Pipeline(stages)
}

// concealed is what a write of a document in an encrypted collection adds to the state collections.
type concealed struct {
	db        string
	esc, ecoc string
	stored    qe.Stored
}

// conceal returns next, a document that is written in place of old (nil for an insert), as an
// encrypted collection stores it.
func (r *Request) conceal(tx *store.Tx, c *store.Coll, old, next bson.Raw, bypass bool) (bson.Raw, *concealed, error) {
	f := qe.Of(c.Raw)
	if f == nil {
		return next, nil, nil
	}
	if r.encryption() == nil {
		if content := next.Lookup(qe.SafeContent); !content.IsZero() && !content.Equal(old.Lookup(qe.SafeContent)) {
			return nil, nil, srverr.New(6666200, "Cannot insert or modify the field %s of an encrypted collection", qe.SafeContent)
		}
		if bypass {
			return next, nil, nil
		}
		return next, nil, f.Check(next)
	}
	stored, err := f.Store(escOf(tx.State(), c, f), old, next)
	if err != nil {
		return nil, nil, err
	}
	return stored.Doc, &concealed{db: c.DB, esc: f.ESC, ecoc: f.ECOC, stored: stored}, f.Check(stored.Doc)
}

// write writes to the state collections. It follows the write of the document, so that one that
// fails leaves nothing.
func (p *concealed) write(r *Request, tx *store.Tx) error {
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

func init() {
	Register(&Command{Name: "compactStructuredEncryptionData", Run: runCompactEncryption})
	Register(&Command{Name: "cleanupStructuredEncryptionData", Run: runCleanupEncryption})
}

func runCompactEncryption(r *Request, dst []byte) ([]byte, error) {
	return r.compactEncryption(dst, "compactionTokens", false)
}

func runCleanupEncryption(r *Request, dst []byte) ([]byte, error) {
	return r.compactEncryption(dst, "cleanupTokens", true)
}

// compactEncryption compacts or cleans up the state collections of an encrypted collection.
func (r *Request) compactEncryption(dst []byte, field string, cleanup bool) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	tokens := r.Body.Lookup(field)
	if tokens.IsZero() {
		return dst, arg.MissingField(r.Cmd.Name + "." + field)
	}
	doc, ok := tokens.Document()
	if !ok {
		return dst, arg.WrongType(r.Cmd.Name+"."+field, tokens.Type, "object")
	}
	var changes qe.Changes
	var read int64
	err = r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		if c == nil {
			return srverr.New(srverr.NamespaceNotFound, "ns not found: %s", ns)
		}
		f := qe.Of(c.Raw)
		if f == nil {
			return srverr.New(6346807, "Target namespace is not an encrypted collection")
		}
		var remembered []bson.Raw
		ecoc := tx.Coll(namespace.Join(c.DB, f.ECOC))
		var rids []string
		if ecoc != nil {
			for s := store.NewScan(ecoc, false, nil); ; {
				rid, doc, ok := s.Next()
				if !ok {
					break
				}
				rids, remembered = append(rids, rid), append(remembered, doc)
			}
		}
		if changes, err = f.Compact(escOf(tx.State(), c, f), remembered, doc, cleanup); err != nil {
			return err
		}
		read = int64(len(remembered))
		for i, rid := range rids {
			if ecoc, err = tx.Delete(ecoc, rid, remembered[i]); err != nil {
				return err
			}
		}
		return r.compactState(tx, namespace.Join(c.DB, f.ESC), &changes)
	})
	if err != nil {
		return dst, err
	}
	at, dst := bson.BeginDocumentElement(dst, "stats")
	part, dst := bson.BeginDocumentElement(dst, "ecoc")
	dst = bson.AppendInt64(bson.AppendInt64(dst, "read", read), "deleted", read)
	dst = bson.EndDocument(dst, part)
	part, dst = bson.BeginDocumentElement(dst, "esc")
	for _, n := range []struct {
		name string
		n    int64
	}{{"read", changes.Read}, {"inserted", int64(len(changes.Insert))}, {"updated", int64(len(changes.Replace))}, {"deleted", int64(len(changes.Delete))}} {
		dst = bson.AppendInt64(dst, n.name, n.n)
	}
	return bson.EndDocument(bson.EndDocument(dst, part), at), nil
}

// compactState writes the changes to ESC.
func (r *Request) compactState(tx *store.Tx, ns string, changes *qe.Changes) error {
	if len(changes.Insert)+len(changes.Replace)+len(changes.Delete) == 0 {
		return nil
	}
	c, err := r.Writable(tx, ns, true)
	if err != nil {
		return err
	}
	for _, id := range changes.Delete {
		if rid, doc, ok := c.ByID(qe.ID(id)); ok {
			if c, err = tx.Delete(c, rid, doc); err != nil {
				return err
			}
		}
	}
	for _, doc := range changes.Replace {
		if rid, old, ok := c.ByID(doc.Lookup("_id")); ok {
			if c, err = tx.Update(c, rid, old, doc, true, nil); err != nil {
				return err
			}
		}
	}
	for _, doc := range changes.Insert {
		if c, err = tx.Insert(c, doc); err != nil {
			return err
		}
	}
	return nil
}
