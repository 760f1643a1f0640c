package server

import (
	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "setDefaultRWConcern", AdminOnly: true, Since: release.At(4, 4, 0), WriteConcern: true, Run: runSetDefaultRW})
	register(&Command{Name: "getDefaultRWConcern", AdminOnly: true, Since: release.At(4, 4, 0), Where: Anywhere, Run: runGetDefaultRW})
}

// defaultConcerns are what setDefaultRWConcern has set. The value is not changed once it is
// published.
type defaultConcerns struct {
	read  string // level; empty: none
	write *replica.WriteConcern
	ts    bson.Timestamp
	wall  bson.DateTime
}

// parseConcern parses a write concern document with the rules of the command's own.
func (r *Request) parseConcern(v bson.RawValue) (replica.WriteConcern, error) {
	saved, savedWC := r.writeConcern, r.wc
	defer func() { r.writeConcern, r.wc = saved, savedWC }()
	r.writeConcern = v
	err := r.readWriteConcern()
	return r.wc, err
}

var setDefaultRWStruct = &idl.Struct{Name: "setDefaultRWConcern", Fields: map[string]idl.Field{
	"defaultReadConcern": {Kind: idl.Object}, "defaultWriteConcern": {Kind: idl.Object},
}}

func runSetDefaultRW(r *Request, dst []byte) ([]byte, error) {
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
	d := r.Node.data
	next := defaultConcerns{}
	if old := d.defaults.Load(); old != nil {
		next = *old
	}
	if given(rv) {
		probe := Request{Node: r.Node, args: args{readConcern: rv}}
		if err := probe.parseReadConcern(); err != nil {
			return dst, err
		}
		for k := range bson.Raw(rv.Value).All() {
			if k != "level" {
				return dst, srverr.New(srverr.BadValue, "'%s' is not suitable for the default read concern", k)
			}
		}
		switch probe.rc.level {
		case "linearizable", "snapshot":
			return dst, srverr.New(srverr.BadValue, "level: '%s' is not suitable for the default read concern", probe.rc.level)
		}
		next.read = probe.rc.level
	}
	if given(wv) {
		next.write = nil
		if !bson.Raw(wv.Value).IsEmpty() {
			wc, err := r.parseConcern(wv)
			if err != nil {
				return dst, err
			}
			if wc.Unacknowledged() || !wc.NamedMode && wc.W == 0 {
				return dst, srverr.New(srverr.BadValue, "Unacknowledged write concern is not suitable for the default write concern")
			}
			wc.Provenance = "customDefault"
			next.write = &wc
		}
	}
	r.noted()
	next.ts, next.wall = d.Clock.Last(), bson.NewDateTime(d.Clock.Now())
	d.defaults.Store(&next)
	return r.appendDefaults(dst), nil
}

func (r *Request) appendDefaults(dst []byte) []byte {
	d := r.Node.data
	if c := d.defaults.Load(); c != nil {
		if c.read != "" {
			at, e := bson.BeginDocumentElement(dst, "defaultReadConcern")
			dst = bson.EndDocument(bson.AppendString(e, "level", c.read), at)
		}
		if c.write != nil {
			wc := *c.write
			wc.Provenance = ""
			dst = wc.Append(dst, "defaultWriteConcern")
		}
		dst = bson.AppendTimestamp(dst, "updateOpTime", c.ts)
		dst = bson.AppendDateTime(dst, "updateWallClockTime", c.wall)
	}
	if r.Node.cfg.Version.AtLeast(5, 0) {
		if c := d.defaults.Load(); c == nil || c.write == nil {
			wc := r.Node.defaultWriteConcern()
			wc.Provenance = ""
			dst = wc.Append(dst, "defaultWriteConcern")
			dst = bson.AppendString(dst, "defaultWriteConcernSource", "implicit")
			if c == nil || c.read == "" {
				at, e := bson.BeginDocumentElement(dst, "defaultReadConcern")
				dst = bson.EndDocument(bson.AppendString(e, "level", "local"), at)
				dst = bson.AppendString(dst, "defaultReadConcernSource", "implicit")
			}
		}
	}
	return bson.AppendDateTime(dst, "localUpdateWallClockTime", bson.NewDateTime(d.Clock.Now()))
}

func runGetDefaultRW(r *Request, dst []byte) ([]byte, error) {
	if err := r.checkFields(map[string]bool{"inMemory": true}); err != nil {
		return dst, err
	}
	v := r.Body.Lookup("inMemory")
	if !v.IsZero() && v.Type != bson.TypeBoolean {
		return dst, arg.WrongType("getDefaultRWConcern.inMemory", v.Type, "bool")
	}
	dst = r.appendDefaults(dst)
	if v.AsBool() {
		dst = bson.AppendBool(dst, "inMemory", true)
	}
	return dst, nil
}
