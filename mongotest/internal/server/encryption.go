package server

import (
	"slices"

	"allium/bson"
	"allium/internal/fle"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/qe"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// Queryable Encryption: what package qe works out is read and written here.

// EncryptionSchema returns the schema of a request with encryptionInformation, by namespace. It is
// nil for a request without.
func (r *Request) EncryptionSchema() bson.Raw {
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
	schema := r.EncryptionSchema()
	if schema == nil {
		return nil
	}
	w := &qe.Rewriter{}
	m := r.Meter()
	for ns := range schema.All() {
		c := st.Coll(ns)
		if c == nil {
			continue
		}
		if f := qe.Of(c.Raw); f != nil {
			w.Sources = append(w.Sources, qe.Source{Fields: f, State: EncryptionState(st, c, f, m)})
		}
	}
	return w
}

// tokenSteps is how many steps the making of a token stands for.
const tokenSteps = 4

// EncryptionState returns the ESC collection of c. m counts what is read.
func EncryptionState(st *store.State, c *store.Coll, f *qe.Fields, m *work.Meter) qe.State {
	esc := st.Coll(namespace.Join(c.DB, f.ESC))
	return func(id fle.Token) (bson.Raw, bool) {
		m.Do(tokenSteps)
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
	if !fle.Contains(filter) || r.EncryptionSchema() == nil {
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

// RevealStages is RevealFilter for a pipeline.
func (r *Request) RevealStages(st *store.State, stages []bson.Raw) ([]bson.Raw, error) {
	if !slices.ContainsFunc(stages, fle.Contains) || r.EncryptionSchema() == nil {
		return stages, nil
	}
	return r.rewriter(st).Pipeline(stages)
}
