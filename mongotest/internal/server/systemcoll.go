package server

import (
	"crypto/sha256"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/store"
)

// SystemCollection is a collection of a member of a replica set that is not stored: what it holds
// is known elsewhere, and is made into documents when somebody reads them.
type SystemCollection struct {
	Name      string
	Options   bson.Raw // as listCollections shows them
	ByID      bool     // it has an index on _id
	Capped    bool
	Size      int64 // of a capped one, in bytes
	documents func(*Node) []bson.Raw
	hidden    bool // a real server makes it some time after its start: it can be read, and is not listed
}

var systemCollections = map[string][]SystemCollection{
	"local": {
		{Name: "oplog.rs", Capped: true, Size: store.MaxLogBytes, documents: oplog,
			Options: bsondoc.Build(func(d *bsondoc.Builder) {
				d.Flag("capped", true)
				d.Value("size", bson.TypeInt64, bson.AppendInt64Value(nil, store.MaxLogBytes))
				d.Flag("autoIndexId", false)
			})},
		{Name: "system.replset", ByID: true, documents: func(n *Node) []bson.Raw {
			return []bson.Raw{n.set.Config(n.cfg.Version)}
		}},
	},
	"config": {
		{Name: "transactions", ByID: true, documents: transactionRecords},
		{Name: "system.sessions", ByID: true, hidden: true, documents: func(n *Node) (docs []bson.Raw) {
			for _, s := range n.data.Sessions().All(func(session.ID) bool { return true }) {
				docs = append(docs, s.Document())
			}
			return docs
		}},
	},
}

// systemCollection returns the collection that is not stored of this name, nil if there is none.
func (n *Node) systemCollection(ns string) *SystemCollection {
	if n.set == nil {
		return nil
	}
	db, name := namespace.Split(ns)
	for i := range systemCollections[db] {
		if c := &systemCollections[db][i]; c.Name == name {
			return c
		}
	}
	return nil
}

// SystemDocuments returns the documents of a collection that is not stored; ok is false for every
// other one.
func (n *Node) SystemDocuments(ns string) (docs []bson.Raw, ok bool) {
	c := n.systemCollection(ns)
	if c == nil {
		return nil, false
	}
	return c.documents(n), true
}

// DescribeSystemCollections calls yield with what listCollections shows of a database's collections
// that are not stored.
func (n *Node) DescribeSystemCollections(db string, nameOnly bool, yield func(bson.Raw)) {
	if n.set == nil {
		return
	}
	for _, c := range systemCollections[db] {
		if c.hidden {
			continue
		}
		yield(bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("name", c.Name)
			d.Str("type", "collection")
			if nameOnly {
				return
			}
			d.Doc("options", bsondoc.OrEmpty(c.Options))
			d.Doc("info", bsondoc.Build(func(d *bsondoc.Builder) {
				d.Flag("readOnly", false)
				id := n.systemUUID(db, c.Name)
				d.Value("uuid", bson.TypeBinary, bson.AppendBinaryValue(nil, bson.BinaryUUID, id[:]))
			}))
			if c.ByID {
				d.Doc("idIndex", IDIndexSpec(nil))
			}
		}))
	}
}

// SystemIndexes returns what listIndexes shows of a collection that is not stored; ok is false for
// every other one.
func (n *Node) SystemIndexes(ns string) (specs []bson.Raw, ok bool) {
	c := n.systemCollection(ns)
	if c == nil || c.hidden {
		return nil, false
	}
	if c.ByID {
		specs = append(specs, IDIndexSpec(nil))
	}
	return specs, true
}

// systemUUID is the UUID of a collection that is not stored: members have each their own.
func (n *Node) systemUUID(db, name string) (id [16]byte) {
	sum := sha256.Sum256([]byte(n.Addr() + "/" + namespace.Join(db, name)))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// AppendSystemStats appends the sizes of a collection that is not stored, as AppendCollStats does;
// ok is false for every other one.
func (r *Request) AppendSystemStats(dst []byte, ns string, scale int64) (_ []byte, ok bool) {
	s := r.Node.systemCollection(ns)
	if s == nil {
		return dst, false
	}
	docs := s.documents(r.Node)
	bytes := int64(0)
	for _, doc := range docs {
		bytes += int64(len(doc))
	}
	db, name := namespace.Split(ns)
	c := &store.Coll{Info: &store.Info{UUID: r.Node.systemUUID(db, name),
		Settings: store.Settings{Capped: s.Capped, Size: s.Size}}}
	return r.appendSizes(dst, c, int64(len(docs)), bytes, scale), true
}

// oplog returns the change log as the oplog has it, as far as it is kept and the member has it.
func oplog(n *Node) []bson.Raw {
	term, applied := n.Set().Position(n)
	var docs []bson.Raw
	log := n.Store().Latest().Log()
	for len(log) > 0 {
		end := 1
		for n.cfg.Version.AtLeast(8, 0) && end < len(log) && log[end].Joined() {
			end++
		}
		e, last := log[0], log[end-1]
		if last.TS.Compare(applied) > 0 {
			break
		}
		switch {
		case end > 1:
			docs = append(docs, insertsEntry(log[:end], term))
		case e.Op != store.OpTrimmed && !e.View(): // of a view, there is what is written to system.views
			docs = append(docs, oplogEntry(e, term))
		}
		log = log[end:]
	}
	if docs == nil { // there is always an entry: that of the set's beginning
		docs = append(docs, oplogEntry(store.FirstEntry(applied, n.Started()), term))
	}
	return docs
}

// insertsEntry is the entry of several documents that one statement inserted: servers have written
// one for all since version 8.0. They are applied one by one, unlike those of a transaction.
func insertsEntry(list []*store.Entry, term int64) bson.Raw {
	const appliedSeparately = 1
	last := list[len(list)-1]
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendTimestamp(doc, "ts", last.TS)
	doc = bson.AppendInt64(doc, "t", term)
	doc = bson.AppendInt32(doc, "v", 2)
	doc = bson.AppendString(doc, "op", "c")
	doc = bson.AppendString(doc, "ns", "admin.$cmd")
	doc = bson.AppendDateTime(doc, "wall", bson.NewDateTime(last.Wall()))
	o, doc := bson.BeginDocumentElement(doc, "o")
	ops, doc := bson.BeginArrayElement(doc, "applyOps")
	for i, e := range list {
		var op int
		op, doc = bson.BeginDocument(bson.AppendIndexHeader(doc, bson.TypeEmbeddedDocument, i))
		doc = bson.AppendString(doc, "op", "i")
		doc = bson.AppendString(doc, "ns", e.NS())
		uuid := e.UUID()
		doc = bson.AppendBinary(doc, "ui", bson.BinaryUUID, uuid[:])
		doc = bson.AppendDocument(doc, "o", bsondoc.OrEmpty(e.After()))
		doc = bson.AppendDocument(doc, "o2", bsondoc.OrEmpty(e.Key()))
		if s := e.Statement(); s.LSID != nil {
			doc = bson.AppendInt32(doc, "stmtId", s.ID)
		}
		doc = bson.EndDocument(doc, op)
	}
	doc = bson.EndDocument(bson.EndDocument(doc, ops), o)
	if s := last.Statement(); s.LSID != nil {
		doc = bson.AppendDocument(doc, "lsid", s.LSID)
		doc = bson.AppendInt64(doc, "txnNumber", s.Number)
	}
	doc = bson.AppendInt32(doc, "multiOpType", appliedSeparately)
	return bson.EndDocument(doc, at)
}

func oplogEntry(e *store.Entry, term int64) bson.Raw {
	_, coll := namespace.Split(e.NS())
	kind, ns := "c", e.NS()
	var command string // of what is no write of a document
	switch e.Op {
	case store.OpInsert:
		kind = "i"
	case store.OpUpdate, store.OpReplace:
		kind = "u"
	case store.OpDelete:
		kind = "d"
	case store.OpNoop, store.OpTrimmed:
		kind = "n"
	case store.OpCreate:
		command = "create"
	case store.OpDrop:
		command = "drop"
	case store.OpDropDatabase:
		command = "dropDatabase"
	case store.OpRename:
		command = "renameCollection"
	case store.OpCreateIndexes:
		command = "createIndexes"
	case store.OpDropIndexes:
		command = "dropIndexes"
	case store.OpModify:
		command = "collMod"
	default:
		kind = "n"
	}
	if kind == "c" {
		db, _ := namespace.Split(e.NS())
		ns = db + ".$cmd"
	}
	if kind == "n" {
		ns = ""
	}
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendTimestamp(doc, "ts", e.TS)
	doc = bson.AppendInt64(doc, "t", term)
	doc = bson.AppendInt32(doc, "v", 2)
	doc = bson.AppendString(doc, "op", kind)
	doc = bson.AppendString(doc, "ns", ns)
	if kind != "n" && e.Op != store.OpDropDatabase {
		uuid := e.UUID()
		doc = bson.AppendBinary(doc, "ui", bson.BinaryUUID, uuid[:])
	}
	doc = bson.AppendDateTime(doc, "wall", bson.NewDateTime(e.Wall()))
	switch kind {
	case "i", "u":
		doc = bson.AppendDocument(doc, "o", bsondoc.OrEmpty(e.After()))
	case "d":
		doc = bson.AppendDocument(doc, "o", bsondoc.OrEmpty(e.Key()))
	default:
		o, d := bson.BeginDocumentElement(doc, "o")
		switch {
		case kind == "n":
			d = bson.AppendString(d, "msg", "noop")
		case e.Op == store.OpDropDatabase:
			d = bson.AppendInt32(d, command, 1)
		case e.Op == store.OpRename:
			d = bson.AppendString(bson.AppendString(d, command, e.NS()), "to", e.To())
			d = append(bson.AppendBool(d, "stayTemp", false), e.More().Elements()...)
		case e.Op == store.OpDropIndexes:
			d = bson.AppendRawValue(bson.AppendString(d, command, coll), "index", e.More().Lookup("name"))
		default: // with the options, the index's definition, or the change
			d = append(bson.AppendString(d, command, coll), e.More().Elements()...)
			if e.Op == store.OpCreate && HasIDIndex(e.More()) {
				collation, _ := e.More().Lookup("collation").Document()
				d = bson.AppendDocument(d, "idIndex", IDIndexSpec(collation))
			}
		}
		doc = bson.EndDocument(d, o)
	}
	switch {
	case kind == "u":
		doc = bson.AppendDocument(doc, "o2", bsondoc.OrEmpty(e.Key()))
	case e.Op == store.OpDropIndexes:
		doc = bson.AppendDocument(doc, "o2", bsondoc.OrEmpty(e.More()))
	}
	if s := e.Statement(); s.LSID != nil {
		doc = bson.AppendDocument(doc, "lsid", s.LSID)
		doc = bson.AppendInt64(doc, "txnNumber", s.Number)
		doc = bson.AppendInt32(doc, "stmtId", s.ID)
	}
	return bson.EndDocument(doc, at)
}

// HasIDIndex reports whether a collection with these options has an index on _id.
func HasIDIndex(options bson.Raw) bool {
	without := options.Lookup("autoIndexId")
	return options.Lookup("clusteredIndex").Type == 0 && options.Lookup("timeseries").Type == 0 &&
		(without.Type == 0 || without.AsBool())
}

// transactionRecords returns what config.transactions has of each session that wrote with a
// transaction number.
func transactionRecords(n *Node) []bson.Raw {
	term, _ := n.Set().Position(n)
	var docs []bson.Raw
	for _, s := range n.Data().Sessions().All(func(session.ID) bool { return true }) {
		if !s.Mu.TryLock() {
			continue // its command has not written yet
		}
		st := &s.State
		number, last := s.LastWrite(n.Data().Sessions().Undone)
		state := ""
		if number < st.TxnNumber {
			number, last = st.TxnNumber, bson.Timestamp{}
		}
		if st.TxnNumber == number && st.Txn != nil && st.Phase == session.TxnCommitted {
			last, state = st.Txn.CommitTS, "committed"
		}
		if !last.IsZero() {
			at, doc := bson.BeginDocument(nil)
			doc = s.ID.Append(doc, "_id")
			doc = bson.AppendInt64(doc, "txnNum", number)
			doc = replica.OpTime{TS: last, Term: term}.Append(doc, "lastWriteOpTime")
			doc = bson.AppendDateTime(doc, "lastWriteDate", bson.DateTime(int64(last.T)*1000))
			if state != "" {
				doc = bson.AppendString(doc, "state", state)
			}
			docs = append(docs, bson.EndDocument(doc, at))
		}
		s.Mu.Unlock()
	}
	return docs
}
