package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Writable returns the collection to write to, which is made if it does not exist and make is set.
func (r *Request) Writable(tx *store.Tx, ns string, make bool) (*store.Coll, error) {
	if strings.HasPrefix(ns, "local.") && r.IsRetryable() {
		return nil, srverr.New(srverr.IllegalOperation, "retryable writes is not supported for unreplicated ns: %s", ns)
	}
	if r.expectedUUID != nil {
		if err := r.checkExpected(tx.State(), ns); err != nil {
			return nil, err
		}
	}
	c := tx.Coll(ns)
	if c == nil {
		if !make {
			return nil, nil
		}
		return r.CreateImplicitly(tx, ns)
	}
	if c.View {
		return nil, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	if c.Capped && r.InTxn() {
		return nil, srverr.New(srverr.OperationNotSupportedInTransaction,
			"Collection '%s' is a capped collection. Writes in transactions are not allowed on capped collections.", ns)
	}
	return c, nil
}

// CreateImplicitly makes a collection because something is to be written to it.
func (r *Request) CreateImplicitly(tx *store.Tx, ns string) (*store.Coll, error) {
	if err := r.makeDatabase(tx, ns); err != nil {
		return nil, err
	}
	if _, name := namespace.Split(ns); r.InTxn() && strings.HasPrefix(name, "system.") {
		return nil, errSystemInTxn(ns)
	}
	return tx.Create(ns, store.Settings{}, store.IDIndex(nil, IDIndexSpec(nil)))
}

// checkViews refuses to go on in a database whose system.views a client has spoilt.
func checkViews(st *store.State, db string) error {
	views := st.Coll(db + ".system.views")
	if views == nil {
		return nil
	}
	for scan := store.NewScan(views, false, nil); ; {
		_, doc, ok := scan.Next()
		if !ok {
			return nil
		}
		id, isText := doc.Lookup("_id").StringValue()
		_, hasSource := doc.Lookup("viewOn").StringValue()
		if !isText || !strings.HasPrefix(id, db+".") || !hasSource || doc.Lookup("pipeline").Type != bson.TypeArray {
			return srverr.New(srverr.InvalidViewDefinition, "Invalid view definition detected in the view catalog. "+
				"Remove the invalid view manually to prevent disallowing any further usage of the view catalog.")
		}
	}
}

// CheckDatabaseCase refuses a database whose name differs from that of another one in case only.
func CheckDatabaseCase(st *store.State, db string) error {
	for _, name := range st.Databases() {
		if name == db {
			return nil
		}
		if strings.EqualFold(name, db) {
			return srverr.New(srverr.DatabaseDifferCase,
				"db already exists with different case already have: [%s] trying to create [%s]", name, db)
		}
	}
	return nil
}

// IDIndexSpec returns the _id index's entry in listIndexes.
func IDIndexSpec(collation bson.Raw) bson.Raw { return IDIndexOf(2, collation) }

func IDIndexOf(version int32, collation bson.Raw) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendInt32(doc, "v", version)
	key, doc := bson.BeginDocumentElement(doc, "key")
	doc = bson.EndDocument(bson.AppendInt32(doc, "_id", 1), key)
	doc = bson.AppendString(doc, "name", "_id_")
	if collation != nil {
		doc = bson.AppendDocument(doc, "collation", collation)
	}
	return bson.EndDocument(doc, at)
}

// CreateSeries makes a time series collection with the option that $out has for it.
func (r *Request) CreateSeries(tx *store.Tx, ns string, option bson.Raw) (*store.Coll, error) {
	if err := r.makeDatabase(tx, ns); err != nil {
		return nil, err
	}
	raw := bsondoc.Single("timeseries", bsondoc.DocumentValue(series.Complete(option)))
	c, err := tx.Create(ns, store.Settings{TimeSeries: true, Raw: raw}, nil)
	if err != nil {
		return nil, err
	}
	x, err := r.SeriesIndex(c)
	if err != nil || x == nil {
		return c, err
	}
	return tx.CreateIndex(c, x)
}

// makeDatabase sees to it that there is a database for a new collection.
func (r *Request) makeDatabase(tx *store.Tx, ns string) error {
	db, _ := namespace.Split(ns)
	if strings.IndexByte(db, '$') >= 0 {
		return srverr.New(17320, "cannot do createCollection on namespace with a $ in it: %s", ns)
	}
	if err := r.CheckNewCollection(tx.State(), db); err != nil {
		return err
	}
	if err := checkViews(tx.State(), db); err != nil {
		return err
	}
	if _, known := r.Node.data.PrimaryShard(db); !known {
		if err := r.Routing.Reach(r.Node.data.shards); err != nil { // config servers make databases
			return err
		}
	}
	r.Node.data.AddDatabase(db)
	return nil
}

// SeriesIndex returns the index that a time series collection with a meta field gets by itself
// since 6.3: on the meta and the time field; nil if there is none.
func (r *Request) SeriesIndex(c *store.Coll) (*store.IndexInfo, error) {
	time, meta := series.Fields(c)
	if meta == "" || meta == time || !r.Version().AtLeast(6, 3) {
		return nil, nil
	}
	spec, err := r.ParseIndex(bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("key", bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendInt32(bson.AppendInt32(d.B, meta, 1), time, 1)
		}))
		d.Str("name", meta+"_1_"+time+"_1")
	}), true)
	if err != nil {
		return nil, err
	}
	return r.FinishIndex(spec, c)
}
