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
	if err := checkAlone(r); err != nil {
		return dst, err
	}
	if err := setDefaultRWArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	if q.read == nil && q.write == nil {
		return dst, srverr.New(
			srverr.BadValue, "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present")
	}
	if own, ok := r.Body.Lookup("writeConcern").Document(); ok && r.Version().AllParsed() {
		mode, named := own.Lookup("w").StringValue()
		if named && r.Node.Set() != nil && !r.Node.Set().KnowsMode(mode) {
			return dst, errMode(mode)
		}
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
		if q.write.IsEmpty() && next.Write != nil && r.Version().AllParsed() {
			return dst, srverr.New(srverr.IllegalOperation,
				"The global default write concern cannot be unset once it is set.")
		}
		next.Write = nil
		if !q.write.IsEmpty() {
			if err := checkDefaultWrite(r, q.write); err != nil {
				return dst, err
			}
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

// checkDefaultWrite refuses a write concern that waits for nothing known.
func checkDefaultWrite(r *server.Request, doc bson.Raw) error {
	w := doc.Lookup("w")
	switch mode, named := w.StringValue(); {
	case !r.Version().AllParsed():
		return nil
	case w.Type == 0:
		return srverr.New(srverr.BadValue, "The default write concern must have 'w'")
	case w.Type == bson.TypeNull, named && r.Node.Set() != nil && !r.Node.Set().KnowsMode(mode):
		return errMode(mode)
	}
	return nil
}

// errMode is the error of a write concern of which the set's configuration has nothing.
func errMode(mode string) error {
	return srverr.New(srverr.UnknownReplWriteConcern,
		"No write concern mode named '%s' found in replica set configuration", mode)
}

func appendDefaults(r *server.Request, dst []byte) []byte {
	d := r.Node.Data()
	c := d.Defaults()
	if c == nil {
		c = &server.DefaultConcerns{}
	}
	since50 := r.Version().AtLeast(5, 0)
	source := func(given bool) string {
		if given {
			return "global"
		}
		return "implicit"
	}
	if level := c.Read; level != "" || since50 {
		if level == "" {
			level = "local"
		}
		at, e := bson.BeginDocumentElement(dst, "defaultReadConcern")
		dst = bson.EndDocument(bson.AppendString(e, "level", level), at)
	}
	if c.Write != nil || since50 {
		wc := r.Node.DefaultWriteConcern()
		if c.Write != nil {
			wc = *c.Write
		}
		wc.Provenance = ""
		dst = wc.Append(dst, "defaultWriteConcern")
	}
	if !c.Set.IsZero() {
		dst = bsondoc.Append(dst, "updateOpTime", c.Set, "updateWallClockTime", c.Wall)
	}
	if since50 {
		dst = bsondoc.Append(dst, "defaultWriteConcernSource", source(c.Write != nil),
			"defaultReadConcernSource", source(c.Read != ""))
	}
	return bson.AppendDateTime(dst, "localUpdateWallClockTime", bson.NewDateTime(d.Clock.Now()))
}

// checkAlone refuses the commands on a server that stands alone.
func checkAlone(r *server.Request) error {
	if r.Node.Role() == server.Standalone && r.Version().AllParsed() {
		return srverr.New(51300, "'%s' is not supported on standalone nodes.", r.Cmd.Name)
	}
	return nil
}

var getDefaultRWArgs = &args.Table[bool]{Name: "getDefaultRWConcern", Fields: map[string]args.Field[bool]{
	"inMemory": args.Bool(func(q *bool) *bool { return q }),
}}

func runGetDefaultRW(r *server.Request, dst []byte) ([]byte, error) {
	inMemory := false
	if err := checkAlone(r); err != nil {
		return dst, err
	}
	if v := r.Body.Lookup("inMemory"); v.Type == bson.TypeNull && !r.Version().AllParsed() {
		return dst, args.WrongType("getDefaultRWConcern.inMemory", v.Type, "bool")
	}
	if err := getDefaultRWArgs.ParseCommand(r, &inMemory); err != nil {
		return dst, err
	}
	dst = appendDefaults(r, dst)
	if inMemory {
		dst = bson.AppendBool(dst, "inMemory", true)
	}
	return dst, nil
}
