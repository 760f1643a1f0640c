package admin

import (
	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "setDefaultRWConcern", AdminOnly: true, Needs: server.OnCluster("setDefaultRWConcern"), WriteConcern: true, Run: runSetDefaultRW,
	})
	server.Register(&server.Command{
		Name: "getDefaultRWConcern", AdminOnly: true, Needs: server.OnCluster("getDefaultRWConcern"), Where: server.Anywhere, Run: runGetDefaultRW,
	})
}

var setDefaultRWStruct = &idl.Struct{Name: "setDefaultRWConcern", Fields: map[string]idl.Field{
	"defaultReadConcern": {Kind: idl.Object}, "defaultWriteConcern": {Kind: idl.Object},
}}

func runSetDefaultRW(r *server.Request, dst []byte) ([]byte, error) {
	var rv, wv bson.RawValue
	err := setDefaultRWStruct.ParseCommand(r, func(k string, v bson.RawValue) error {
		if k == "defaultReadConcern" {
			rv = v
		} else {
			wv = v
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	given := func(v bson.RawValue) bool { return v.Type == bson.TypeEmbeddedDocument }
	if !given(rv) && !given(wv) {
		return dst, srverr.New(srverr.BadValue, "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present")
	}
	d := r.Node.Data()
	next := server.DefaultConcerns{}
	if old := d.Defaults(); old != nil {
		next = *old
	}
	if given(rv) {
		level, err := r.Node.ParseReadConcern(rv)
		if err != nil {
			return dst, err
		}
		if level == "linearizable" || level == "snapshot" {
			return dst, srverr.New(srverr.BadValue, "level: '%s' is not suitable for the default read concern", level)
		}
		for k := range bson.Raw(rv.Value).All() {
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
	if given(wv) {
		next.Write = nil
		if !bson.Raw(wv.Value).IsEmpty() {
			wc, err := r.ParseWriteConcern(wv)
			if err != nil {
				return dst, err
			}
			if wc.Unacknowledged() || !wc.NamedMode && wc.W == 0 {
				return dst, srverr.New(srverr.BadValue, "Unacknowledged write concern is not suitable for the default write concern")
			}
			if p := bson.Raw(wv.Value).Lookup("provenance"); p.Type == bson.TypeString {
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
		dst = bson.AppendTimestamp(dst, "updateOpTime", c.Set)
		dst = bson.AppendDateTime(dst, "updateWallClockTime", c.Wall)
	}
	if r.Node.Config().Version.AtLeast(5, 0) {
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

func runGetDefaultRW(r *server.Request, dst []byte) ([]byte, error) {
	if err := r.CheckFields(map[string]bool{"inMemory": true}); err != nil {
		return dst, err
	}
	v := r.Body.Lookup("inMemory")
	if !v.IsZero() && v.Type != bson.TypeBoolean {
		return dst, arg.WrongType("getDefaultRWConcern.inMemory", v.Type, "bool")
	}
	dst = appendDefaults(r, dst)
	if v.AsBool() {
		dst = bson.AppendBool(dst, "inMemory", true)
	}
	return dst, nil
}
