package write

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/qe"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "compactStructuredEncryptionData", Needs: server.OnColl("compactStructuredEncryptionData"),
		Run: runCompactEncryption,
	})
	server.Register(&server.Command{
		Name: "cleanupStructuredEncryptionData", Needs: server.OnColl("cleanupStructuredEncryptionData"),
		Run: runCleanupEncryption,
	})
}

func runCompactEncryption(r *server.Request, dst []byte) ([]byte, error) {
	return compactEncryption(r, dst, "compactionTokens", false)
}

func runCleanupEncryption(r *server.Request, dst []byte) ([]byte, error) {
	return compactEncryption(r, dst, "cleanupTokens", true)
}

// compactEncryption compacts or cleans up the state collections of an encrypted collection.
func compactEncryption(r *server.Request, dst []byte, field string, cleanup bool) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	if r.Version().AllParsed() {
		if err := args.CheckFields(r, r.Cmd.Name, field, "encryptionInformation", "anchorPaddingFactor"); err != nil {
			return dst, err
		}
	}
	tokens := r.Body.Lookup(field)
	if tokens.IsZero() || args.IsNull(tokens) && r.Version().AllParsed() {
		return dst, args.MissingField(r.Cmd.Name + "." + field)
	}
	doc, ok := tokens.Document()
	if !ok {
		return dst, args.WrongType(r.Cmd.Name+"."+field, tokens.Type, "object")
	}
	var changes qe.Changes
	var read int64
	err = r.Write(func(tx *store.Tx) error {
		m := r.Meter()
		c := tx.Coll(ns)
		if c == nil {
			return srverr.New(srverr.NamespaceNotFound, "ns not found: %s", ns)
		}
		if c.View && r.Version().AllParsed() {
			return srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
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
				m.Do(1)
				rids, remembered = append(rids, rid), append(remembered, doc)
			}
		}
		if changes, err = f.Compact(server.EncryptionState(tx.State(), c, f, m), remembered, doc, cleanup,
			m); err != nil {
			return err
		}
		read = int64(len(remembered))
		for i, rid := range rids {
			if ecoc, err = tx.Delete(ecoc, rid, remembered[i]); err != nil {
				return err
			}
		}
		return compactState(r, tx, namespace.Join(c.DB, f.ESC), &changes)
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
	}{{"read", changes.Read}, {"inserted", int64(len(changes.Insert))}, {"updated", int64(len(changes.Replace))},
		{"deleted", int64(len(changes.Delete))}} {
		dst = bson.AppendInt64(dst, n.name, n.n)
	}
	return bson.EndDocument(bson.EndDocument(dst, part), at), nil
}

// compactState writes the changes to ESC.
func compactState(r *server.Request, tx *store.Tx, ns string, changes *qe.Changes) error {
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
