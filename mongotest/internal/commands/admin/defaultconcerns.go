package admin

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "setDefaultRWConcern", AdminOnly: true, Needs: server.OnCluster("setDefaultRWConcern"),
		WriteConcern: true, Run: runSetDefaultRW,
	})
	server.Register(&server.Command{
		Name: "getDefaultRWConcern", AdminOnly: true, Needs: server.OnCluster("getDefaultRWConcern"),
		Where: server.Anywhere, Run: runGetDefaultRW,
	})
}

// defaultRWSpec are the arguments of setDefaultRWConcern, nil if they are not given.
type defaultRWSpec struct{ read, write bson.Raw }

var setDefaultRWArgs = &args.Table[defaultRWSpec]{Name: "setDefaultRWConcern",
	Fields: map[string]args.Field[defaultRWSpec]{
		"defaultReadConcern":  args.Object(func(q *defaultRWSpec) *bson.Raw { return &q.read }),
		"defaultWriteConcern": args.Object(func(q *defaultRWSpec) *bson.Raw { return &q.write }),
	}}

func runSetDefaultRW(r *server.Request, dst []byte) ([]byte, error) {
	var q defaultRWSpec
	if err := setDefaultRWArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	if q.read == nil && q.write == nil {
		return dst, srverr.New(
			srverr.BadValue, "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present")
	}
	d := r.Node.Data()
	next := server.DefaultConcerns{}
	if old := d.Defaults(); old != nil {
		next = *old
	}
	if q.read != nil {
		level, err := r.Node.ParseReadConcern(bsondoc.DocumentValue(q.read))
		if err != nil {
			return dst, err
		}
		if level == "linearizable" || level == "snapshot" {
			return dst, srverr.New(srverr.BadValue, "level: '%s' is not suitable for the default read concern", level)
		}
		for k := range q.read.All() {
			switch k {
			case "level":
			case "provenance":
				return dst, srverr.New(srverr.BadValue, "'provenance' must be unset in default read concern")
			default:
				return dst, srverr.New(srverr.BadValue, "'%s' is not suitable for the default read concern", k)
			}
		}
		next.Read = level
	}
	if q.write != nil {
		next.Write = nil
		if !q.write.IsEmpty() {
			wc, err := r.ParseWriteConcern(bsondoc.DocumentValue(q.write))
			if err != nil {
				return dst, err
			}
			if wc.Unacknowledged() || !wc.NamedMode && wc.W == 0 {
				return dst, srverr.New(srverr.BadValue,
					"Unacknowledged write concern is not suitable for the default write concern")
			}
			if p := q.write.Lookup("provenance"); p.Type == bson.TypeString {
				return dst, srverr.New(srverr.BadValue, "'provenance' must be unset in default write concern")
			}
			wc.Provenance = "customDefault"
			next.Write = &wc
		}
	}
	r.NoteChange()
	next.Set, next.Wall = d.Clock.Last(), bson.NewDateTime(d.Clock.Now())
	d.SetDefaults(&next)
	return appendDefaults(r, dst), nil
}

func appendDefaults(r *server.Request, dst []byte) []byte {
	d := r.Node.Data()
	if c := d.Defaults(); c != nil {
		if c.Read != "" {
			at, e := bson.BeginDocumentElement(dst, "defaultReadConcern")
			dst = bson.EndDocument(bson.AppendString(e, "level", c.Read), at)
		}
		if c.Write != nil {
			wc := *c.Write
			wc.Provenance = ""
			dst = wc.Append(dst, "defaultWriteConcern")
		}
		dst = bsondoc.Append(dst, "updateOpTime", c.Set, "updateWallClockTime", c.Wall)
	}
	if r.Version().AtLeast(5, 0) {
		if c := d.Defaults(); c == nil || c.Write == nil {
			wc := r.Node.DefaultWriteConcern()
			wc.Provenance = ""
			dst = wc.Append(dst, "defaultWriteConcern")
			dst = bson.AppendString(dst, "defaultWriteConcernSource", "implicit")
			if c == nil || c.Read == "" {
				at, e := bson.BeginDocumentElement(dst, "defaultReadConcern")
				dst = bson.EndDocument(bson.AppendString(e, "level", "local"), at)
				dst = bson.AppendString(dst, "defaultReadConcernSource", "implicit")
			}
		}
	}
	return bson.AppendDateTime(dst, "localUpdateWallClockTime", bson.NewDateTime(d.Clock.Now()))
}

var getDefaultRWArgs = &args.Table[bool]{Name: "getDefaultRWConcern", Fields: map[string]args.Field[bool]{
	"inMemory": args.Bool(func(q *bool) *bool { return q }).Must(),
}}

func runGetDefaultRW(r *server.Request, dst []byte) ([]byte, error) {
	inMemory := false
	if err := getDefaultRWArgs.ParseCommand(r, &inMemory); err != nil {
		return dst, err
	}
	dst = appendDefaults(r, dst)
	if inMemory {
		dst = bson.AppendBool(dst, "inMemory", true)
	}
	return dst, nil
}
