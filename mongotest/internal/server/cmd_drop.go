package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	Register(&Command{Name: "drop", WriteConcern: true, Run: runDrop})
	Register(&Command{Name: "dropDatabase", WriteConcern: true, Run: runDropDatabase})
}

func runDrop(r *Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	switch {
	case ns == "local.oplog.rs" && r.Node.set != nil:
		return dst, &srverr.Error{Msg: "can't drop live oplog while replicating"}
	case ns == "admin.system.version":
		return dst, srverr.New(srverr.IllegalOperation, "can't drop system collection %s", ns)
	}
	var indexes int
	found := false
	err = r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		if found = c != nil; !found {
			return nil
		}
		_, name := splitNS(ns)
		if strings.HasPrefix(name, "system.") && name != "system.profile" && name != "system.views" {
			return srverr.New(srverr.IllegalOperation, "can't drop system collection %s", ns)
		}
		indexes = len(c.Indexes())
		if c.View {
			indexes = -1
			if err := forgetView(tx, ns); err != nil {
				return err
			}
		}
		return tx.Drop(c)
	})
	if err != nil {
		return dst, err
	}
	if !found {
		if r.Node.cfg.Version.AtLeast(7, 0) || r.Node.role == Mongos {
			return dst, nil
		}
		return dst, srverr.New(srverr.NamespaceNotFound, "ns not found")
	}
	if indexes >= 0 {
		dst = bson.AppendInt32(dst, "nIndexesWas", int32(indexes))
	}
	return bson.AppendString(dst, "ns", ns), nil
}

func runDropDatabase(r *Request, dst []byte) ([]byte, error) {
	if n, _ := arg.Number(r.Arg()); n != 1 && !r.Node.cfg.Version.AtLeast(5, 0) {
		return dst, srverr.New(srverr.IllegalOperation, "have to pass 1 as db parameter")
	}
	switch {
	case r.DB == "admin":
		return dst, srverr.New(srverr.IllegalOperation, "Dropping the '%s' database is prohibited.", r.DB)
	case r.DB == "local" && r.Node.set != nil:
		return dst, srverr.New(srverr.IllegalOperation, "Cannot drop '%s' database while replication is active", r.DB)
	}
	found, dropped := false, 0
	err := r.Write(func(tx *store.Tx) error {
		found = false
		var list []*store.Coll
		tx.State().Colls(r.DB, func(c *store.Coll) bool {
			list = append(list, c)
			return true
		})
		dropped = len(list)
		for _, c := range list {
			if err := tx.Drop(c); err != nil {
				return err
			}
			found = true
		}
		if found {
			tx.DropDatabase(r.DB)
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	r.Node.profiler.forget(r.DB)
	if r.Node.set != nil {
		if err := r.awaitDrops(found, dropped); err != nil {
			return dst, err
		}
		found = r.Node.data.dropping(r.DB, false) || found
	}
	if !found {
		return dst, nil
	}
	if r.Node.cfg.Version.AtLeast(6, 0) {
		return dst, nil
	}
	return bson.AppendString(dst, "dropped", r.DB), nil
}

// awaitDrops waits until the write concern that the client gave holds for the drops of a database's
// collections. If it cannot, the database remains, empty, until another attempt.
func (r *Request) awaitDrops(found bool, dropped int) error {
	if !found || r.wc.Provenance != "clientSupplied" {
		return nil
	}
	failed, err := r.Node.set.WaitReplication(r, r.Node, r.Conn.client.LastOp, &r.wc)
	if err != nil || failed == nil {
		return err
	}
	r.Node.data.dropping(r.DB, true)
	at := r.Conn.client.LastOp
	return srverr.New(failed.Code, "dropDatabase %s failed waiting for %d collection drop(s) (most recent drop optime: { ts: Timestamp(%d, %d), t: 1 }) to replicate.", r.DB, dropped, at.T, at.I)
}

// dropping reports whether an attempt to drop the database is unfinished, and notes whether it is
// from now on.
func (d *Data) dropping(db string, unfinished bool) (before bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before = d.dropPending == db
	switch {
	case unfinished:
		d.dropPending = db
	case before:
		d.dropPending = ""
	}
	return before
}
