package server

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// The profiler writes what commands did into the system.profile collection of their database: all
// of them at level 2, the slow ones at level 1, or those that a filter chooses.

// profiler says what a node profiles. The zero value profiles nothing. Safe for concurrent use.
type profiler struct {
	on     atomic.Bool // any database has a level
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
		return ProfileLimits{SlowMS: 100, SampleRate: 1}
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
}

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
	on := false
	for _, l := range p.levels {
		on = on || l.Level > 0
	}
	p.on.Store(on)
	return nil
}

// profile notes what a request did, if its database is profiled. reply is the reply's document,
// which is still open.
func (n *Node) profile(r *Request, reply []byte, err error) {
	if !n.profiler.on.Load() || r.Cmd == nil || r.op == nil || r.Cmd.Name == "profile" || n.role == Mongos || r.DB == "local" {
		return
	}
	level, limits := n.Profiling(r.DB)
	took := time.Since(r.start)
	slow := took >= time.Duration(limits.SlowMS)*time.Millisecond && (limits.SampleRate >= 1 || rand.Float64() < limits.SampleRate)
	if level.Level == 0 || level.Filter == nil && level.Level == 1 && !slow {
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
	if level.Filter != nil {
		if ok, err := level.Filter.Match(doc); err != nil || !ok {
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
