package server

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// The profiler writes what commands did into the system.profile collection of their database: all
// of them at level 2, the slow ones at level 1, or those that a filter chooses.

// profiler says what a node profiles. The zero value profiles nothing. Safe for concurrent use.
type profiler struct {
	on     atomic.Bool  // any database has a level, or everything is slow
	slow   atomic.Int64 // in milliseconds above the default, from when on a command is slow
	mu     sync.Mutex
	levels map[string]ProfileLevel
	limits *ProfileLimits // nil: the default
}

// ProfileLevel is what is profiled of a database.
type ProfileLevel struct {
	Level  int32    // 0: nothing, 1: what is slow or Filter chooses, 2: all that Filter chooses
	Spec   bson.Raw // of Filter; nil: none
	Filter *query.Filter
}

// ProfileLimits say for all databases of a node what is slow, and how much of that is profiled.
type ProfileLimits struct {
	SlowMS     int32
	SampleRate float64 // from 0 to 1
}

const profileMaxSize = 1 << 20 // of system.profile

func (p *profiler) limitsLocked() ProfileLimits {
	if p.limits == nil {
		return ProfileLimits{SlowMS: defaultSlowMS, SampleRate: 1}
	}
	return *p.limits
}

// Profiling returns what is profiled of a database.
func (n *Node) Profiling(db string) (ProfileLevel, ProfileLimits) {
	p := &n.profiler
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.levels[db], p.limitsLocked()
}

// SetProfileLimits says what is slow, and how much of that is profiled.
func (n *Node) SetProfileLimits(l ProfileLimits) {
	p := &n.profiler
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits = &l
	p.slow.Store(int64(l.SlowMS) - defaultSlowMS)
	p.decideLocked()
}

// decideLocked decides whether requests keep what the profiler tells of them.
func (p *profiler) decideLocked() {
	on := p.limits != nil && p.limits.SlowMS <= 0
	for _, l := range p.levels {
		on = on || l.Level > 0
	}
	p.on.Store(on)
}

// defaultSlowMS is from how many milliseconds on a command is slow.
const defaultSlowMS = 100

// Profiles reports whether a database is profiled.
func (n *Node) Profiles(db string) bool {
	level, _ := n.Profiling(db)
	return level.Level > 0
}

// ForgetProfile ends the profiling of a database that is dropped.
func (n *Node) ForgetProfile(db string) {
	p := &n.profiler
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.levels, db)
}

// Profile says what is profiled of the request's database from now on, and makes the collection
// that the profiler writes to.
func (r *Request) Profile(l ProfileLevel) error {
	if l.Level != 0 && r.Routing == nil {
		err := r.Node.Store().Write(func(tx *store.Tx) error {
			ns := r.DB + ".system.profile"
			if tx.Coll(ns) != nil {
				return nil
			}
			_, err := tx.Create(ns, store.Settings{Capped: true, Size: profileMaxSize}, nil)
			return err
		})
		if err != nil {
			return err
		}
	}
	p := &r.Node.profiler
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.levels == nil {
		p.levels = map[string]ProfileLevel{}
	}
	p.levels[r.DB] = l
	p.decideLocked()
	return nil
}

// Profiled reports whether something on the node is profiled: what is only for the profiler can be
// left out otherwise.
func (n *Node) Profiled() bool { return n.profiler.on.Load() }

// BeginStatement begins one of several statements of a command, each of which the profiler tells
// of.
func (r *Request) BeginStatement() {
	if r.Node.Profiled() {
		r.reads = reads{told: r.told}
	}
}

// EndStatement tells the profiler of a statement: what it is and how it ended.
func (r *Request) EndStatement(op string, statement func() bson.Raw, err error) {
	r.sampleStatement(statement, err)
	if !r.Node.Profiled() {
		return
	}
	r.told = true
	shown := statement
	if v := r.Body.Lookup("comment"); !v.IsZero() {
		shown = func() bson.Raw {
			doc := statement()
			return bson.Raw(bson.EndDocument(bson.AppendRawValue(append(make([]byte, 4), doc.Elements()...), "comment",
				v), 0))
		}
	}
	r.Node.enter(r, op, shown, nil, err)
}

// profile notes what a request did, if its database is profiled. reply is the reply's document,
// which is still open.
func (n *Node) profile(r *Request, reply []byte, err error) {
	if r.Cmd == nil || r.op == nil || r.Cmd.Name == "profile" || r.told && err == nil ||
		!n.Profiled() && time.Since(r.start) < time.Duration(n.profiler.slow.Load()+defaultSlowMS)*time.Millisecond {
		return
	}
	command := func() bson.Raw { return r.withComment(withoutDocuments(shown(r.Body))) }
	n.enter(r, opKind(r.Cmd.Name), command, reply, err)
}

// withComment gives a getMore the comment of the command that made its cursor.
func (r *Request) withComment(command bson.Raw) bson.Raw {
	v := r.origin.Lookup("comment")
	if v.IsZero() || !command.Lookup("comment").IsZero() {
		return command
	}
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(append(d.B, command.Elements()...), "comment", v)
	})
}

// withoutDocuments leaves out the documents that an insert has in its body.
func withoutDocuments(body bson.Raw) bson.Raw {
	if name, _ := bsondoc.FirstElement(body); name == "insert" && !body.Lookup("documents").IsZero() {
		return bsondoc.Without(body, "documents")
	}
	return body
}

// enter writes an entry if the level of the database wants it, and a line to the log if it was
// slow.
func (n *Node) enter(r *Request, op string, command func() bson.Raw, reply []byte, err error) {
	level, limits := n.Profiling(r.DB)
	took := time.Since(r.start)
	slow := took >= time.Duration(limits.SlowMS)*time.Millisecond &&
		(limits.SampleRate >= 1 || rand.Float64() < limits.SampleRate)
	profiles := n.role != Mongos && r.DB != "local" && level.Level > 0 &&
		(level.Filter != nil || level.Level > 1 || slow)
	if !profiles && !slow {
		return
	}
	ns := r.Namespace()
	if strings.HasPrefix(ns, r.DB+".$cmd.") {
		return // a cursor of no collection
	}
	if ns == r.DB {
		ns += ".$cmd"
	}
	d := bsondoc.Builder{}
	at, b := bson.BeginDocument(nil)
	d.B = b
	d.Str("op", op).Str("ns", ns).Doc("command", shortened(command()))
	if r.origin != nil {
		d.Doc("originatingCommand", shortened(r.origin))
	}
	d.B = r.appendFigures(d.B, reply, err)
	if err != nil {
		e := srverr.From(err)
		d.Flag("ok", false).Str("errMsg", e.Msg).Str("errName", n.CodeName(e.Code))
		d.B = bson.AppendInt32(d.B, "errCode", e.Code)
	}
	d.B = r.appendLocks(d.B, op)
	d.Doc("storage", bsondoc.OrEmpty(nil))
	if reply != nil {
		d.B = bson.AppendInt32(d.B, "responseLength", int32(len(reply)))
	}
	d.Str("protocol", "op_msg")
	d.B = bson.AppendInt32(d.B, "millis", int32(took.Milliseconds()))
	d.B = r.appendPlans(d.B)
	d.B = bson.AppendDateTime(d.B, "ts", bson.NewDateTime(n.data.Clock.Now()))
	client := r.Conn.nc.RemoteAddr().String()
	if host, _, ok := strings.Cut(client, ":"); ok {
		client = host
	}
	d.Str("client", client)
	if name := r.Conn.client.appName; name != "" {
		d.Str("appName", name)
	}
	var users [][]byte
	user := ""
	if u := r.Conn.user; u != nil {
		user = u.Name + "@" + u.DB
		users = append(users, bsondoc.Of("user", u.Name, "db", u.DB))
	}
	d.B = bsondoc.AppendDocuments(d.B, "allUsers", users)
	d.Str("user", user)
	doc := bson.EndDocument(d.B, at)
	if level.Filter != nil {
		if ok, err := level.Filter.Match(doc); err != nil || !ok {
			return
		}
		slow = true // it says what is logged, too
	}
	if slow {
		n.logSlow(r, doc)
	}
	if !profiles {
		return
	}
	// A failed write to the profile is ignored: the command is done.
	_ = n.Store().Write(func(tx *store.Tx) error {
		c := tx.Coll(r.DB + ".system.profile")
		if c == nil {
			return nil
		}
		_, err := tx.Insert(c, doc)
		return err
	})
}

// maxProfiled is how long a command may be that an entry has as it is.
const maxProfiled = 50 << 10

// shortened returns a command as an entry has it: of a long one the beginning of its text, and its
// comment.
func shortened(command bson.Raw) bson.Raw { return shortenedTo(command, maxProfiled) }

// shortenedTo is the same for commands of more than n bytes. The text has no comment.
func shortenedTo(command bson.Raw, n int) bson.Raw {
	if len(command) <= n {
		return command
	}
	text := bsontext.Document(bsondoc.Without(command, "comment"))
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "") + "..."
	}
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.Str("$truncated", text)
		if v := command.Lookup("comment"); !v.IsZero() {
			d.B = bson.AppendRawValue(d.B, "comment", v)
		}
	})
}

// appendFigures appends how many keys and documents a command looked at, and what it did.
func (r *Request) appendFigures(dst []byte, reply []byte, failed error) []byte {
	var doc, cursor bson.Raw
	if reply != nil {
		doc = bson.Raw(bson.EndDocument(append([]byte(nil), reply...), 0))
		cursor, _ = doc.Lookup("cursor").Document()
	}
	id, _ := cursor.Lookup("id").AsInt64()
	if r.Cmd.Name == "getMore" {
		id, _ = r.Arg().AsInt64()
	}
	if id != 0 {
		dst = bson.AppendInt64(dst, "cursorid", id)
	}
	if len(r.scans) > 0 || r.quick.summary != "" {
		keys, docs := r.examined()
		dst = bsondoc.AppendShortest(dst, "keysExamined", keys)
		dst = bsondoc.AppendShortest(dst, "docsExamined", docs)
	}
	for _, s := range r.scans {
		if s.Plan().Blocks() {
			dst = bson.AppendBool(dst, "hasSortStage", true)
			break
		}
	}
	for _, s := range r.scans {
		if p := s.Plan(); p.Trial != nil {
			dst = bson.AppendBool(dst, "fromMultiPlanner", true)
			if p.Replanned != "" {
				dst = bsondoc.Append(dst, "replanned", true, "replanReason", p.Replanned)
			}
			break
		}
	}
	short := func(name string, n int64) { dst = bsondoc.AppendShortest(dst, name, n) }
	switch e := &r.effect; {
	case failed != nil:
	case e.Kind == "update":
		short("nMatched", e.Matched)
		short("nModified", e.Modified)
		if e.Upserted > 0 && !r.Version().AtLeast(5, 0) {
			dst = bson.AppendBool(dst, "upsert", true)
		}
		if r.Version().AtLeast(5, 0) {
			short("nUpserted", e.Upserted)
		}
	case e.Kind == "remove":
		short("ndeleted", e.Deleted)
	case r.Cmd.Name == "insert":
		n, _ := doc.Lookup("n").AsInt64()
		short("ninserted", n)
	}
	if r.keys.Added > 0 {
		short("keysInserted", r.keys.Added)
	}
	if r.keys.Removed > 0 {
		short("keysDeleted", r.keys.Removed)
	}
	if cursor != nil {
		if now, _ := cursor.Lookup("id").AsInt64(); now == 0 {
			dst = bson.AppendBool(dst, "cursorExhausted", true)
		}
	}
	dst = bson.AppendInt32(dst, "numYield", 0)
	if cursor != nil {
		batch := cursor.Lookup("firstBatch")
		if batch.IsZero() {
			batch = cursor.Lookup("nextBatch")
		}
		returned := int64(0)
		for range bson.Raw(batch.Value).Values() {
			returned++
		}
		short("nreturned", returned)
	}
	for _, s := range r.scans {
		if hash, key, ok := s.Plan().Hashes(); ok {
			dst = bson.AppendString(dst, "queryHash", hash)
			if r.Version().AtLeast(8, 0) { // the new name of the same
				dst = bson.AppendString(dst, "planCacheShapeHash", hash)
			}
			dst = bson.AppendString(dst, "planCacheKey", key)
			break
		}
	}
	if r.Cmd.Shape != nil && !r.Cmd.Unsettable && r.Version().AtLeast(8, 0) {
		if shape, ok := r.Cmd.Shape(r); ok {
			dst = bson.AppendString(dst, "queryShapeHash", query.ShapeHash(shape))
		}
	}
	return dst
}

// appendLocks appends the locks that a server would have taken.
func (r *Request) appendLocks(dst []byte, op string) []byte {
	mode := "r"
	if op == "insert" || op == "update" || op == "remove" || r.effect.Kind != "" {
		mode = "w"
	}
	count := bsondoc.Of("acquireCount", bsondoc.Of(mode, int64(1)))
	return bson.AppendDocument(dst, "locks", bsondoc.Of("Global", count, "Database", count, "Collection", count))
}

// appendPlans appends how the documents were found.
func (r *Request) appendPlans(dst []byte) []byte {
	switch {
	case len(r.scans) > 0:
		p := r.scans[0].Ran()
		dst = bson.AppendString(dst, "planSummary", p.Summary())
		at, b := bson.BeginDocumentElement(dst, "execStats")
		return bson.EndDocument(p.Append(b, r.Node.IntParameter("internalQueryMaxBlockingSortMemoryUsageBytes"), true),
			at)
	case r.quick.summary != "":
		dst = bson.AppendString(dst, "planSummary", r.quick.summary)
		keys, docs := int32(r.quick.keys), int32(r.quick.docs)
		stage := bsondoc.Of("stage", r.quick.summary, "nReturned", docs, "keysExamined", keys, "docsExamined", docs)
		if r.quick.stage != "" {
			stage = bsondoc.Of("stage", r.quick.stage, "keyPattern", "{ _id: 1 }", "indexName", "_id_", "keysExamined",
				keys, "docsExamined", docs, "nReturned", docs)
		}
		return bson.AppendDocument(dst, "execStats", stage)
	}
	return dst
}

// opKind returns what currentOp and the profiler call a command.
func opKind(name string) string {
	switch name {
	case "insert", "update":
		return name
	case "delete":
		return "remove"
	case "find":
		return "query"
	case "getMore":
		return "getmore"
	}
	return "command"
}
