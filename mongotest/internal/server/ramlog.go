package server

import (
	"strconv"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// The log that getLog shows: lines of JSON in the form of the server's since 4.4, about how the
// node started, what was slow, and documents that their collection's validator would refuse. It is
// kept in memory.

// maxLogLines is how many lines are kept.
const maxLogLines = 1024

// ramLog has the last lines. Safe for concurrent use; the zero value is empty.
type ramLog struct {
	mu    sync.Mutex
	lines []string
	total int64
}

func (l *ramLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == maxLogLines {
		copy(l.lines, l.lines[1:])
		l.lines = l.lines[:maxLogLines-1]
	}
	l.lines = append(l.lines, line)
	l.total++
}

// LogLines returns the lines of the log "global" or "startupWarnings", the oldest first, and how
// many there have been.
func (n *Node) LogLines(name string) (lines []string, total int64) {
	if name != "global" {
		if !n.cfg.Version.AtLeast(5, 0) {
			return nil, 0
		}
		return []string{n.firstLine()}, 1
	}
	n.log.mu.Lock()
	defer n.log.mu.Unlock()
	if n.log.total <= maxLogLines && n.cfg.Version.AtLeast(5, 0) {
		lines = append(lines, n.firstLine())
	}
	return append(lines, n.log.lines...), n.log.total + int64(min(1, len(lines)))
}

// firstLine is that of the start.
func (n *Node) firstLine() string {
	return logLine(n.Started(), "I", "CONTROL", 0, "main", "mongotest started", nil)
}

// logLine writes a line; severity is I for what is of interest, W for a warning.
func logLine(at time.Time, severity, component string, id int32, context, message string, attributes bson.Raw) string {
	doc := bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("t", bsondoc.Of("$date", at.UTC().Format("2006-01-02T15:04:05.000Z07:00")))
		d.Str("s", severity).Str("c", component)
		d.B = bson.AppendInt32(d.B, "id", id)
		d.Str("ctx", context).Str("msg", message)
		if attributes != nil {
			d.Doc("attr", attributes)
		}
	})
	line, err := bson.MarshalExtJSON(doc, false)
	if err != nil {
		return ""
	}
	return string(line)
}

// slowFields are the fields of an entry of the profile that a line about a slow command has, with
// their names there, in the line's order.
var slowFields = [][2]string{
	{"ns", "ns"}, {"appName", "appName"}, {"command", "command"}, {"originatingCommand", "originatingCommand"},
	{"planSummary", "planSummary"}, {"cursorid", "cursorid"}, {"keysExamined", "keysExamined"},
	{"docsExamined", "docsExamined"}, {"hasSortStage", "hasSortStage"}, {"usedDisk", "usedDisk"},
	{"fromMultiPlanner", "fromMultiPlanner"}, {"replanned", "replanned"}, {"replanReason", "replanReason"},
	{"nMatched", "nMatched"}, {"nModified", "nModified"}, {"nUpserted", "nUpserted"}, {"ninserted", "ninserted"},
	{"ndeleted", "ndeleted"}, {"keysInserted", "keysInserted"}, {"keysDeleted", "keysDeleted"},
	{"cursorExhausted", "cursorExhausted"}, {"numYield", "numYields"}, {"nreturned", "nreturned"},
	{"queryHash", "queryHash"}, {"planCacheShapeHash", "planCacheShapeHash"}, {"planCacheKey", "planCacheKey"},
	{"queryShapeHash", "queryShapeHash"},
	{"ok", "ok"}, {"errMsg", "errMsg"}, {"errName", "errName"}, {"errCode", "errCode"},
	{"responseLength", "reslen"}, {"locks", "locks"}, {"storage", "storage"},
}

// logSlow logs what the profiler would tell of a slow command.
func (n *Node) logSlow(r *Request, entry bson.Raw) {
	op, _ := entry.Lookup("op").StringValue()
	component, kind := "COMMAND", "command"
	if op == "update" || op == "remove" {
		if name, _ := bsondoc.FirstElement(entry.Lookup("command").Value); name == "q" { // a statement
			component, kind = "WRITE", op
		}
	}
	attributes := bsondoc.Build(func(d *bsondoc.Builder) {
		d.Str("type", kind)
		for _, f := range slowFields {
			if v := entry.Lookup(f[0]); v.Type != 0 {
				d.B = bson.AppendRawValue(d.B, f[1], v)
			}
		}
		if n.cfg.Version.AtLeast(5, 0) {
			d.Str("remote", r.Conn.nc.RemoteAddr().String())
		}
		d.Str("protocol", "op_msg")
		d.B = bson.AppendRawValue(d.B, "durationMillis", entry.Lookup("millis"))
	})
	n.log.add(logLine(n.data.Clock.Now(), "I", component, 51803, r.logContext(), "Slow query", attributes))
}

// logContext is what lines say of the connection that a command came by.
func (r *Request) logContext() string { return "conn" + strconv.Itoa(int(r.Conn.id)) }

// logInvalid logs that a document fails the validator of its collection.
func (n *Node) logInvalid(r *Request, ns string, doc bson.Raw, failure *srverr.Error) {
	attributes := bsondoc.Build(func(d *bsondoc.Builder) {
		d.Str("namespace", ns).Doc("document", doc)
		if info, ok := failure.Extra.Lookup("errInfo").Document(); ok {
			d.Doc("errInfo", info)
		}
	})
	n.log.add(logLine(n.data.Clock.Now(), "W", "STORAGE", 20294, r.logContext(), "Document would fail validation",
		attributes))
}
