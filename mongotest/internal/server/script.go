package server

import (
	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/js"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/store"
)

// JavaScript of the commands: see package js.

// scripts makes the interpreter of an expression's or a pipeline's programs; nil: there is none.
func (r *Request) scripts() func(check func() error) expr.Script {
	if r.Node.cfg.NoScripting {
		return nil
	}
	return func(check func() error) expr.Script {
		if r.MapReduce {
			return r.engine(check, r.Scope, true)
		}
		return r.engine(check, nil, false)
	}
}

// engine returns an interpreter for the operation, which sees the functions of system.js if it is
// told to.
func (r *Request) engine(check func() error, scope bson.Raw, stored bool) *js.Engine {
	if check == nil {
		check = r.Check
	}
	cfg := js.Config{Check: check, Scope: scope, ServerVersion: r.Version().String()}
	if stored {
		st := r.Node.Store().Latest()
		cfg.Stored = func() (docs []bson.Raw) {
			c := st.Coll(namespace.Join(r.DB, "system.js"))
			if c == nil {
				return nil
			}
			for s := store.NewScan(c, false, nil); ; {
				_, doc, ok := s.Next()
				if !ok {
					return docs
				}
				docs = append(docs, doc)
			}
		}
	}
	return js.New(cfg)
}
