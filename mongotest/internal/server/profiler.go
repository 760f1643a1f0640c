package server

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// The profiler writes what commands did into the system.profile collection of their database: all
// of them at level 2, the slow ones at level 1, or those that a filter chooses.

func init() {
	Register(&Command{Name: "profile", Needs: OnDB("enableProfiler"), Where: Anywhere, Run: runProfile})
}

// profiler says what a node profiles. The zero value profiles nothing.
type profiler struct {
	on     atomic.Bool // any database has a level
	mu     sync.Mutex
	levels map[string]profileLevel
	slowMS *int32 // nil: the default
	rate   *float64
}

type profileLevel struct {
	level  int32
	spec   bson.Raw // of filter; nil: none
	filter *query.Filter
}

const (
	defaultSlowMS  = 100
	profileMaxSize = 1 << 20 // of system.profile
)

// of returns the profiling level of a database.
func (p *profiler) of(db string) (level profileLevel, slowMS int32, rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slowMS, rate = defaultSlowMS, 1
	if p.slowMS != nil {
		slowMS = *p.slowMS
	}
	if p.rate != nil {
		rate = *p.rate
	}
	return p.levels[db], slowMS, rate
}

// Profiles reports whether a database is profiled.
func (n *Node) Profiles(db string) bool {
	level, _, _ := n.profiler.of(db)
	return level.level > 0
}

// ForgetProfile ends the profiling of a database that is dropped.
func (n *Node) ForgetProfile(db string) {
	p := &n.profiler
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.levels, db)
}

func runProfile(r *Request, dst []byte) ([]byte, error) {
	number := func(name string, v bson.RawValue) (int64, bool, error) {
		switch {
		case v.IsZero() || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined:
			return 0, false, nil
		case !v.IsNumber():
			return 0, false, srverr.New(srverr.TypeMismatch, "BSON field 'profile.%s' is the wrong type '%s', expected types '[long, int, decimal, double']", name, bsontext.TypeName(v.Type))
		}
		n, _ := arg.Number(v)
		return n, true, nil
	}
	level, _, err := number("profile", r.Arg())
	if err != nil {
		return dst, err
	}
	if r.Arg().Type == bson.TypeNull || r.Arg().Type == bson.TypeUndefined {
		level = -1
	}
	slow, hasSlow, err := number("slowms", r.Body.Lookup("slowms"))
	if err != nil {
		return dst, err
	}
	if _, _, err := number("sampleRate", r.Body.Lookup("sampleRate")); err != nil {
		return dst, err
	}
	if r.Node.role == Mongos && level != 0 && level != -1 {
		settings := "'slowms', 'sampleRate' or 'filter'"
		if !r.Node.cfg.Version.AtLeast(5, 0) {
			settings = "'slowms' and 'sampleRate'"
		}
		return dst, srverr.New(srverr.BadValue, "Profiling is not permitted on mongoS: the 'profile' field should be 0 to change %s settings for logging, or -1 to view current values", settings)
	}
	spec := r.Body.Lookup("filter")
	var filter *query.Filter
	if doc, ok := spec.Document(); ok {
		if filter, err = query.ParseFilter(doc, r.FullOptions(r.DB, nil, nil)); err != nil {
			return dst, err
		}
	}
	p := &r.Node.profiler
	was, slowMS, rate := p.of(r.DB)
	if level >= 0 && level <= 2 {
		if err := r.startProfiling(level); err != nil {
			return dst, err
		}
		next := was
		next.level = int32(level)
		switch s, _ := spec.StringValue(); {
		case filter != nil:
			next.spec, next.filter = bsondoc.Copy(spec.Value), filter
		case s == "unset":
			next.spec, next.filter = nil, nil
		}
		p.mu.Lock()
		if p.levels == nil {
			p.levels = map[string]profileLevel{}
		}
		p.levels[r.DB] = next
		on := false
		for _, l := range p.levels {
			on = on || l.level > 0
		}
		p.on.Store(on)
		p.mu.Unlock()
	}
	if level >= -1 && level <= 2 {
		p.mu.Lock()
		if hasSlow {
			ms := int32(min(max(slow, -1), 1<<31-1))
			p.slowMS = &ms
		}
		if f, ok := r.Body.Lookup("sampleRate").Double(); ok && f >= 0 && f <= 1 {
			p.rate = &f
		}
		p.mu.Unlock()
	}
	dst = bson.AppendInt32(dst, "was", was.level)
	dst = bson.AppendInt32(dst, "slowms", slowMS)
	dst = bson.AppendDouble(dst, "sampleRate", rate)
	if was.spec != nil {
		dst = bson.AppendDocument(dst, "filter", was.spec)
		dst = bson.AppendString(dst, "note", "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.")
	}
	return dst, nil
}

// startProfiling makes the collection that the profiler writes to.
func (r *Request) startProfiling(level int64) error {
	if level == 0 || r.Node.role == Mongos {
		return nil
	}
	return r.Node.Store().Write(func(tx *store.Tx) error {
		ns := r.DB + ".system.profile"
		if tx.Coll(ns) != nil {
			return nil
		}
		_, err := tx.Create(ns, store.Settings{Capped: true, Size: profileMaxSize}, nil)
		return err
	})
}

// profile notes what a request did, if its database is profiled. reply is the reply's document,
// which is still open.
func (n *Node) profile(r *Request, reply []byte, err error) {
	if !n.profiler.on.Load() || r.Cmd == nil || r.op == nil || r.Cmd.Name == "profile" || n.role == Mongos || r.DB == "local" {
		return
	}
	level, slowMS, rate := n.profiler.of(r.DB)
	took := time.Since(r.start)
	slow := took >= time.Duration(slowMS)*time.Millisecond && (rate >= 1 || rand.Float64() < rate)
	if level.level == 0 || level.filter == nil && level.level == 1 && !slow {
		return
	}
	ns := r.Namespace()
	if ns == r.DB {
		ns += ".$cmd"
	}
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "op", opKind(r.Cmd.Name))
	doc = bson.AppendString(doc, "ns", ns)
	doc = bson.AppendDocument(doc, "command", shown(r.Body))
	doc = appendFigures(doc, r.Cmd.Name, reply)
	if err != nil {
		e := srverr.From(err)
		doc = bson.AppendString(doc, "errMsg", e.Msg)
		doc = bson.AppendString(doc, "errName", n.CodeName(e.Code))
		doc = bson.AppendInt32(doc, "errCode", e.Code)
	}
	doc = bson.AppendInt32(doc, "responseLength", int32(len(reply)))
	doc = bson.AppendString(doc, "protocol", "op_msg")
	doc = bson.AppendInt32(doc, "millis", int32(took.Milliseconds()))
	doc = bson.AppendDateTime(doc, "ts", bson.NewDateTime(n.data.Clock.Now()))
	doc = bson.AppendString(doc, "client", r.Conn.nc.RemoteAddr().String())
	if name := r.Conn.client.appName; name != "" {
		doc = bson.AppendString(doc, "appName", name)
	}
	doc = bsondoc.AppendDocuments(doc, "allUsers", nil)
	user := ""
	if u := r.Conn.user; u != nil {
		user = u.Name + "@" + u.DB
	}
	doc = bson.EndDocument(bson.AppendString(doc, "user", user), at)
	if level.filter != nil {
		if ok, err := level.filter.Match(doc); err != nil || !ok {
			return
		}
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

// appendFigures appends how many documents a command read and changed, as its reply says.
func appendFigures(dst []byte, command string, reply []byte) []byte {
	r := bson.Raw(bson.EndDocument(append([]byte(nil), reply...), 0))
	if cursor, ok := r.Lookup("cursor").Document(); ok {
		if id, _ := cursor.Lookup("id").AsInt64(); id != 0 {
			dst = bson.AppendInt64(dst, "cursorid", id)
		} else {
			dst = bson.AppendBool(dst, "cursorExhausted", true)
		}
		batch := cursor.Lookup("firstBatch")
		if batch.IsZero() {
			batch = cursor.Lookup("nextBatch")
		}
		returned := int32(0)
		for range bson.Raw(batch.Value).Values() {
			returned++
		}
		return bson.AppendInt32(dst, "nreturned", returned)
	}
	n, _ := r.Lookup("n").AsInt64()
	switch command {
	case "insert":
		return bson.AppendInt32(dst, "ninserted", int32(n))
	case "delete":
		return bson.AppendInt32(dst, "ndeleted", int32(n))
	case "update":
		upserted := int32(0)
		for range bson.Raw(r.Lookup("upserted").Value).Values() {
			upserted++
		}
		modified, _ := r.Lookup("nModified").AsInt64()
		dst = bson.AppendInt32(dst, "nMatched", int32(n)-upserted)
		dst = bson.AppendInt32(dst, "nModified", int32(modified))
		if upserted > 0 {
			dst = bson.AppendBool(dst, "upsert", true)
		}
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
