package read

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/change"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// changeStream turns the change log into events. It is the source of a $changeStream pipeline.
type changeStream struct {
	run *server.Running
	n   *server.Node
	// What is watched: one collection, the collections of a database, or all.
	db, coll string
	all      bool

	lookup   string // fullDocument
	before   string // fullDocumentBeforeChange
	expanded bool   // showExpandedEvents

	from    change.Token // events after this place are wanted
	check   *change.Token
	seen    bson.Timestamp // the log was looked at up to here
	pending []event
	done    bool // after an invalidate

	last, previous bson.Raw // tokens of the events handed out
	current        change.Token
	fragments      []event // of the event that was handed out last, if it is being split
	skip           int     // so many fragments of the first event were seen before
}

// event is a change event with its token.
type event struct {
	doc, token bson.Raw
	place      change.Token
	last       bool // the stream ends with it
}

// openChangeStream checks the options and finds out where to start.
func (e *pipelineEnv) openChangeStream(ns pipeline.Namespace, spec bson.Raw) (*changeStream, error) {
	r := e.run.Request
	s := &changeStream{run: e.run, n: r.Node, db: ns.DB, coll: ns.Coll, lookup: "default", before: "off"}
	q := server.ChangeStreamSpec{Lookup: s.lookup, Before: s.before}
	if err := server.ChangeStreamArgs.Parse(r, spec, &q); err != nil {
		return nil, err
	}
	if k := q.NotInAPI(spec); k != "" && r.APIStrict() && r.Version().AllParsed() {
		return nil, server.NotStable("$changeStream." + k)
	}
	s.lookup, s.before, s.expanded = q.Lookup, q.Before, q.Expanded
	startAt, at := q.StartAt.Timestamp()
	if at && startAt.IsZero() {
		startAt = bson.Timestamp{I: 1}
	}
	if err := s.checkModes(); err != nil {
		return nil, err
	}
	if err := s.checkTarget(q.Cluster); err != nil {
		return nil, err
	}
	switch {
	case q.ResumeAfter != nil && q.StartAfter != nil:
		return nil, srverr.New(50865, "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage")
	case at && (q.ResumeAfter != nil || q.StartAfter != nil):
		return nil, srverr.New(40674, "Only one type of resume option is allowed, but multiple were found.")
	}
	if err := r.Routing.ReachAll(); err != nil {
		return nil, err
	}
	return s, s.start(q.ResumeAfter, q.StartAfter, startAt)
}

func (s *changeStream) checkModes() error {
	v6 := s.n.Config().Version.AtLeast(6, 0)
	switch s.lookup {
	case "default", "updateLookup":
	case "whenAvailable", "required":
		if v6 {
			break
		}
		fallthrough
	default:
		if v6 {
			return srverr.New(
				srverr.BadValue, "Enumeration value '%s' for field '$changeStream.fullDocument' is not a valid value.",
				s.lookup)
		}
		return srverr.New(
			40575, "unrecognized value for the 'fullDocument' option to the $changeStream stage. Expected 'default' or 'updateLookup', got '%s'", s.lookup)
	}
	switch s.before {
	case "off", "whenAvailable", "required":
		return nil
	}
	return srverr.New(
		srverr.BadValue, "Enumeration value '%s' for field '$changeStream.fullDocumentBeforeChange' is not a valid value.", s.before)
}

// checkTarget checks what is to be watched.
func (s *changeStream) checkTarget(cluster bool) error {
	name := s.db + "." + s.coll
	if s.coll == "" {
		name = s.db + ".$cmd.aggregate"
	}
	switch {
	case cluster && (s.db != "admin" || s.coll != ""):
		return srverr.New(
			srverr.InvalidOptions, "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name; found %s", name)
	case cluster:
		s.all = true
	case s.db == "admin" || s.db == "local" || s.db == "config":
		return srverr.New(srverr.InvalidNamespace, "$changeStream may not be opened on the internal %s database", s.db)
	case strings.HasPrefix(s.coll, "system."):
		return srverr.New(srverr.InvalidNamespace, "$changeStream may not be opened on the internal %s collection",
			name)
	}
	return nil
}

// start finds the place in the log where the stream begins.
func (s *changeStream) start(resume, startAfter bson.Raw, at bson.Timestamp) error {
	log := s.n.Store().Latest().Log()
	switch {
	case resume != nil || startAfter != nil:
		doc := resume
		if doc == nil {
			doc = startAfter
		}
		t, err := change.ParseToken(doc)
		if err != nil {
			return err
		}
		if t.Invalidate && resume != nil {
			return srverr.New(srverr.InvalidResumeToken,
				"Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.")
		}
		s.from = t
		s.last = bsondoc.Copy(doc)
		if s.skip = t.Fragment; t.Event {
			s.check = &t
		}
	case !at.IsZero():
		s.from = change.Token{Ts: at}
	default:
		now := s.position()
		if now.IsZero() {
			now = s.n.Data().Clock.Last()
		}
		s.from = change.Token{Ts: bson.Timestamp{T: now.T, I: now.I + 1}}
	}
	if len(log) > 0 && log[0].Op == store.OpTrimmed && s.from.Ts.Compare(log[0].TS) <= 0 {
		return srverr.New(srverr.ChangeStreamHistoryLost,
			"Resume of change stream was not possible, as the resume point may no longer be in the oplog.")
	}
	return nil
}

// position returns the time up to which events may be shown: what a majority has.
func (s *changeStream) position() bson.Timestamp {
	if s.n.Role() == server.Mongos {
		return s.n.Seen()
	}
	ts := s.n.Store().Latest().TS
	if s.n.Set() != nil {
		if c := s.n.Data().Committed(); c.Compare(ts) < 0 {
			ts = c
		}
		if a := s.n.Set().Applied(s.n).TS; a.Compare(ts) < 0 {
			ts = a
		}
	}
	return ts
}

// Next returns the next event.
func (s *changeStream) Next() (bson.Raw, error) {
	if s.done {
		return nil, nil
	}
	if len(s.pending) == 0 {
		if err := s.load(); err != nil {
			return nil, err
		}
		if len(s.pending) == 0 {
			return nil, pipeline.ErrWait
		}
	}
	ev := s.pending[0]
	s.pending = s.pending[1:]
	s.previous, s.last, s.current = s.last, ev.token, ev.place
	s.done = ev.last
	return ev.doc, nil
}

// Close has nothing to free.
func (s *changeStream) Close() {}

// maxPending bounds how many events are made in advance.
const maxPending = 128

// load makes events of the next entries of the log.
func (s *changeStream) load() error {
	end := s.position()
	log := s.n.Store().Latest().Log()
	if len(log) > 0 && log[0].Op == store.OpTrimmed && s.from.Ts.Compare(log[0].TS) < 0 {
		return srverr.New(srverr.ChangeStreamHistoryLost,
			"Resume of change stream was not possible, as the resume point may no longer be in the oplog.")
	}
	lo, hi := 0, len(log)
	for lo < hi {
		mid := (lo + hi) / 2
		if log[mid].TS.Compare(s.from.Ts) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for i, e := range log[lo:] {
		if i%work.Interval == work.Interval-1 {
			if err := s.run.Interrupted(); err != nil {
				return err
			}
		}
		if e.TS.Compare(end) > 0 {
			break
		}
		if len(s.pending) >= maxPending {
			return nil
		}
		if err := s.entry(e); err != nil {
			return err
		}
		if n := len(s.pending); n > 0 && s.pending[n-1].last {
			return nil
		}
	}
	if end.Compare(s.seen) > 0 {
		s.seen = end
	}
	if len(s.pending) == 0 {
		s.move() // or a stream that waits would keep to a place that the log forgets
	}
	return nil
}

// move moves the stream to where the log was looked at, when all events up to there have been
// handed out.
func (s *changeStream) move() {
	if s.seen.Compare(s.from.Ts) > 0 {
		s.from = change.Token{Ts: s.seen}
	}
}

func (s *changeStream) tokenNotFound() error {
	return srverr.New(srverr.ChangeStreamFatalError, "cannot resume stream; the resume token was not found. %s",
		change.TokenText(s.last))
}

// entry makes the events of one entry of the log, as far as they come after the stream's place.
func (s *changeStream) entry(e *store.Entry) error {
	ns := s.concerns(e)
	if !ns {
		return nil
	}
	had := len(s.pending)
	tok := change.Token{Ts: e.TS, Event: true, Index: e.Index(), Uuid: e.UUID(), Key: e.Key()}
	if s.check != nil && s.check.Ts == e.TS && s.check.Index == e.Index() {
		s.check = nil
	}
	if s.from.Before(e.TS, e.Index(), false) {
		if s.check != nil && s.check.Ts.Compare(e.TS) < 0 {
			return s.tokenNotFound()
		}
		token := tok.Document()
		doc, err := s.event(e, token)
		if err != nil {
			return err
		}
		s.pending = append(s.pending, event{doc: doc, token: token, place: tok})
	}
	if s.invalidates(e) && s.from.Before(e.TS, e.Index(), true) {
		tok.Invalidate = true
		token := tok.Document()
		at, doc := bson.BeginDocument(nil)
		doc = bsondoc.Append(doc, "_id", token, "operationType", "invalidate", "clusterTime", e.TS)
		if s.n.Config().Version.AtLeast(6, 0) {
			doc = bson.AppendDateTime(doc, "wallTime", bson.NewDateTime(e.Wall()))
		}
		s.pending = append(s.pending, event{doc: bson.EndDocument(doc, at), token: token, last: true})
	}
	if len(s.pending) > had {
		s.from = tok
	}
	return nil
}

// concerns reports whether an entry is an event of this stream.
func (s *changeStream) concerns(e *store.Entry) bool {
	if _, ok := eventTypes[e.Op]; !ok {
		return false
	}
	if !s.expanded && (expandedOnly[e.Op] || e.View()) {
		return false
	}
	if e.Op == store.OpDropDatabase {
		return s.all || s.coll == "" && e.NS() == s.db
	}
	match := func(ns string) bool {
		db, coll := namespace.Split(ns)
		if strings.HasPrefix(coll, "system.") {
			return false
		}
		switch {
		case s.all:
			return db != "admin" && db != "config" && db != "local"
		case s.coll == "":
			return db == s.db
		}
		return db == s.db && coll == s.coll
	}
	return match(e.NS()) || e.Op == store.OpRename && match(e.To())
}

func (s *changeStream) invalidates(e *store.Entry) bool {
	switch e.Op {
	case store.OpDrop, store.OpRename:
		return s.coll != ""
	case store.OpDropDatabase:
		return !s.all
	}
	return false
}

var eventTypes = map[store.Op]string{
	store.OpInsert: "insert", store.OpUpdate: "update", store.OpReplace: "replace", store.OpDelete: "delete",
	store.OpDrop:   "drop",
	store.OpRename: "rename", store.OpDropDatabase: "dropDatabase", store.OpCreate: "create",
	store.OpCreateIndexes: "createIndexes",
	store.OpDropIndexes:   "dropIndexes", store.OpModify: "modify", store.OpShardCollection: "shardCollection",
}

// expandedOnly are the changes that only showExpandedEvents shows.
var expandedOnly = map[store.Op]bool{
	store.OpCreate: true, store.OpCreateIndexes: true, store.OpDropIndexes: true, store.OpModify: true,
	store.OpShardCollection: true,
}

// namespaceType says what a create event has created.
func namespaceType(e *store.Entry) string {
	switch {
	case e.View():
		return "view"
	case !e.More().Lookup("timeseries").IsZero():
		return "timeseries"
	}
	return "collection"
}

// event makes the event of an entry.
func (s *changeStream) event(e *store.Entry, token bson.Raw) (bson.Raw, error) {
	v := s.n.Config().Version
	old := !v.AtLeast(5, 0)
	at, doc := bson.BeginDocument(nil)
	txn := func() {
		if lsid, number, _ := e.Txn(); lsid != nil {
			doc = bsondoc.Append(doc, "txnNumber", number, "lsid", lsid)
		}
	}
	to := func() {
		if e.Op == store.OpRename {
			doc = appendEventNS(doc, "to", e.To())
		}
	}
	if old {
		txn()
		to()
	}
	doc = bsondoc.Append(doc, "_id", token, "operationType", eventTypes[e.Op], "clusterTime", e.TS)
	if s.expanded && e.Op != store.OpDropDatabase && !e.View() {
		uuid := e.UUID()
		doc = bson.AppendBinary(doc, "collectionUUID", bson.BinaryUUID, uuid[:])
	}
	if v.Has(release.Reply, "$changeStream.wallTime") {
		doc = bson.AppendDateTime(doc, "wallTime", bson.NewDateTime(e.Wall()))
	}
	var err error
	if doc, err = s.appendFullDocument(doc, e); err != nil {
		return nil, err
	}
	image, err := s.preImage(e)
	if err != nil {
		return nil, err
	}
	if old && image.Type != 0 {
		doc = bson.AppendRawValue(doc, "fullDocumentBeforeChange", image)
	}
	if e.Op == store.OpDropDatabase {
		ns, d := bson.BeginDocumentElement(doc, "ns")
		doc = bson.EndDocument(bson.AppendString(d, "db", e.NS()), ns)
	} else {
		doc = appendEventNS(doc, "ns", e.NS())
	}
	if e.Op == store.OpCreate && v.Has(release.Reply, "$changeStream.nsType") {
		doc = bson.AppendString(doc, "nsType", namespaceType(e))
	}
	if !old {
		to()
	}
	if key := e.Key(); key != nil {
		doc = bson.AppendDocument(doc, "documentKey", key)
	}
	if e.Op == store.OpUpdate {
		doc = change.AppendUpdateDescription(doc, e, !old,
			s.expanded && v.Has(release.Reply, "$changeStream.updateDescription.disambiguatedPaths"))
	}
	switch {
	case !s.expanded:
	case e.Op == store.OpRename:
		what, d := bson.BeginDocumentElement(doc, "operationDescription")
		d = appendEventNS(d, "to", e.To())
		doc = bson.EndDocument(append(d, e.More().Elements()...), what)
	case e.Op == store.OpCreateIndexes || e.Op == store.OpDropIndexes:
		doc = bson.AppendDocument(doc, "operationDescription",
			bsondoc.Of("indexes", bsondoc.ArrayValue(bsondoc.DocumentValue(e.More()))))
	case e.Op == store.OpCreate && !e.View() && server.HasIDIndex(e.More()):
		what, d := bson.BeginDocumentElement(doc, "operationDescription")
		d = append(d, e.More().Elements()...)
		collation, _ := e.More().Lookup("collation").Document()
		doc = bson.EndDocument(bson.AppendDocument(d, "idIndex", server.IDIndexSpec(collation)), what)
	case e.More() != nil && expandedOnly[e.Op]:
		doc = bson.AppendDocument(doc, "operationDescription", e.More())
	}
	if before := e.StateBefore(); s.expanded && e.Op == store.OpModify && before != nil {
		doc = bson.AppendDocument(doc, "stateBeforeChange", before)
	}
	if !old {
		txn()
		if image.Type != 0 {
			doc = bson.AppendRawValue(doc, "fullDocumentBeforeChange", image)
		}
	}
	return bson.EndDocument(doc, at), nil
}

func appendEventNS(doc []byte, field, ns string) []byte {
	db, coll := namespace.Split(ns)
	at, doc := bson.BeginDocumentElement(doc, field)
	doc = bsondoc.Append(doc, "db", db, "coll", coll)
	return bson.EndDocument(doc, at)
}

func (s *changeStream) appendFullDocument(doc []byte, e *store.Entry) ([]byte, error) {
	switch e.Op {
	case store.OpInsert, store.OpReplace:
		return bson.AppendDocument(doc, "fullDocument", e.After()), nil
	case store.OpUpdate:
	default:
		return doc, nil
	}
	switch s.lookup {
	case "updateLookup":
		st, ok := s.n.Store().At(s.position())
		if !ok {
			st = s.n.Store().Latest()
		}
		if c := st.Coll(e.NS()); c != nil && c.UUID == e.UUID() {
			if s := sharding.Of(c); s != nil { // others may have one with this _id, too
				if c = c.Part(s.ShardOf(e.After())); c == nil {
					return bson.AppendNull(doc, "fullDocument"), nil
				}
			}
			if _, now, ok := c.ByID(e.Key().Lookup("_id")); ok {
				return bson.AppendDocument(doc, "fullDocument", now), nil
			}
		}
		return bson.AppendNull(doc, "fullDocument"), nil
	case "whenAvailable", "required":
		if e.Images() {
			return bson.AppendDocument(doc, "fullDocument", e.After()), nil
		}
		if s.lookup == "required" {
			return doc, noImage("post-image", e)
		}
		return bson.AppendNull(doc, "fullDocument"), nil
	}
	return doc, nil
}

// preImage returns the document before the change, if the stream asks for it.
func (s *changeStream) preImage(e *store.Entry) (bson.RawValue, error) {
	if s.before == "off" || e.Op != store.OpUpdate && e.Op != store.OpReplace && e.Op != store.OpDelete {
		return bson.RawValue{}, nil
	}
	if e.Images() && !s.n.Data().ImageExpired(e.Wall()) {
		return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: e.Before()}, nil
	}
	if s.before == "required" {
		return bson.RawValue{}, noImage("pre-image", e)
	}
	return bson.RawValue{Type: bson.TypeNull}, nil
}

func noImage(what string, e *store.Entry) error {
	return srverr.New(
		srverr.NoMatchingDocument, "Change stream was configured to require a %s for all update events, but the %s was not found for event on %s", what, what, e.NS())
}

// token returns the postBatchResumeToken after a batch. stashed tells that the last event has not
// been handed out after all.
func (s *changeStream) token(stashed bool) bson.Raw {
	switch {
	case stashed:
		return s.previous
	case len(s.pending) > 0 || len(s.fragments) > 0 || s.done:
		return s.last
	}
	s.move()
	if !s.from.Event && s.from.Ts == s.seen || s.last == nil {
		mark := change.Token{Ts: s.from.Ts}
		s.last = mark.Document()
	}
	return s.last
}
