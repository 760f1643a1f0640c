package server

import (
	"strings"
	"time"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "setClusterParameter", AdminOnly: true, Since: release.At(6, 0, 0), WriteConcern: true, Run: runSetClusterParameter})
	register(&Command{Name: "getClusterParameter", AdminOnly: true, Since: release.At(6, 0, 0), Where: OptIn, Run: runGetClusterParameter})
}

// clusterParameters are the parameters of a whole deployment, with their defaults.
var clusterParameters = map[string]bson.Raw{
	"changeStreamOptions": bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("preAndPostImages", bsondoc.Build(func(d *bsondoc.Builder) { d.Str("expireAfterSeconds", "off") }))
	}),
}

func (d *Data) clusterParameter(name string) bson.Raw {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.parameters[name]; ok {
		return v
	}
	return clusterParameters[name]
}

func runSetClusterParameter(r *Request, dst []byte) ([]byte, error) {
	spec, ok := r.Arg().Document()
	if !ok {
		return dst, arg.WrongType("setClusterParameter.setClusterParameter", r.Arg().Type, "object")
	}
	for name, v := range spec.All() {
		if clusterParameters[name] == nil {
			return dst, srverr.New(srverr.NoSuchKey, "Unknown server parameter: %s", name)
		}
		doc, ok := v.Document()
		if !ok {
			return dst, arg.WrongType("setClusterParameter."+name, v.Type, "object")
		}
		after := doc.Lookup("preAndPostImages", "expireAfterSeconds")
		if s, isText := after.StringValue(); isText && s != "off" {
			return dst, srverr.New(srverr.BadValue, "Non-numeric value of 'expireAfterSeconds' should be 'off'")
		}
		if n, exact := after.AsInt64(); after.IsNumber() && (!exact || n <= 0) {
			return dst, srverr.New(srverr.BadValue, "Numeric value of 'expireAfterSeconds' should be positive")
		}
		d := r.Node.data
		d.mu.Lock()
		if d.parameters == nil {
			d.parameters = map[string]bson.Raw{}
		}
		d.parameters[strings.Clone(name)] = bsondoc.Copy(doc) // the name lies in the connection's buffer
		d.mu.Unlock()
	}
	return dst, nil
}

func runGetClusterParameter(r *Request, dst []byte) ([]byte, error) {
	var names []string
	switch v := r.Arg(); v.Type {
	case bson.TypeString:
		if s, _ := v.StringValue(); s == "*" {
			names = bsondoc.SortedKeys(clusterParameters)
		} else {
			names = []string{s}
		}
	case bson.TypeArray:
		for e := range bson.Raw(v.Value).Values() {
			names = append(names, bsondoc.MustString(e))
		}
	default:
		return dst, srverr.New(srverr.TypeMismatch, "BSON field 'getClusterParameter.getClusterParameter' is the wrong type '%s', expected types '[string, array]'", bsontext.TypeName(v.Type))
	}
	at, dst := bson.BeginArrayElement(dst, "clusterParameters")
	for i, name := range names {
		doc := r.Node.data.clusterParameter(name)
		if doc == nil {
			return dst, srverr.New(srverr.NoSuchKey, "Unknown server parameter: %s", name)
		}
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("_id", name)
			d.B = append(d.B, doc.Elements()...)
		})...)
	}
	return bson.EndDocument(dst, at), nil
}

// imageExpired reports whether the document before a change that was made at this time is not kept
// any more.
func (d *Data) imageExpired(changed time.Time) bool {
	after, ok := d.clusterParameter("changeStreamOptions").Lookup("preAndPostImages", "expireAfterSeconds").AsInt64()
	return ok && d.Clock.Now().Sub(changed) > time.Duration(min(after, 1<<31))*time.Second
}
