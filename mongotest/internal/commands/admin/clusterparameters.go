package admin

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "setClusterParameter", AdminOnly: true, Needs: server.OnCluster("setClusterParameter"),
		WriteConcern: true,
		Mongos:       server.OnMongos{Config: true}, Run: runSetClusterParameter,
	})
	server.Register(&server.Command{
		Name: "getClusterParameter", AdminOnly: true, Needs: server.OnCluster("getClusterParameter"),
		Where: server.OptIn, Run: runGetClusterParameter,
	})
}

func runSetClusterParameter(r *server.Request, dst []byte) ([]byte, error) {
	spec, ok := r.Arg().Document()
	if !ok {
		return dst, args.WrongType("setClusterParameter.setClusterParameter", r.Arg().Type, "object")
	}
	for name, v := range spec.All() {
		if r.Node.Data().ClusterParameter(name) == nil {
			return dst, srverr.New(srverr.NoSuchKey, "Unknown server parameter: %s", name)
		}
		doc, ok := v.Document()
		if !ok {
			return dst, args.WrongType("setClusterParameter."+name, v.Type, "object")
		}
		after := doc.Lookup("preAndPostImages", "expireAfterSeconds")
		if s, isText := after.StringValue(); isText && s != "off" {
			return dst, srverr.New(srverr.BadValue, "Non-numeric value of 'expireAfterSeconds' should be 'off'")
		}
		if n, exact := after.AsInt64(); after.IsNumber() && (!exact || n <= 0) {
			return dst, srverr.New(srverr.BadValue, "Numeric value of 'expireAfterSeconds' should be positive")
		}
		r.Node.Data().SetClusterParameter(name, doc)
	}
	return dst, nil
}

func runGetClusterParameter(r *server.Request, dst []byte) ([]byte, error) {
	var names []string
	switch v := r.Arg(); v.Type {
	case bson.TypeString:
		if s, _ := v.StringValue(); s == "*" {
			names = bsondoc.SortedKeys(server.ClusterParameters)
		} else {
			names = []string{s}
		}
	case bson.TypeArray:
		for e := range bson.Raw(v.Value).Values() {
			names = append(names, bsondoc.MustString(e))
		}
	default:
		return dst, srverr.New(srverr.TypeMismatch,
			"BSON field 'getClusterParameter.getClusterParameter' is the wrong type '%s', expected types '[string, array]'", bsontext.TypeName(v.Type))
	}
	at, dst := bson.BeginArrayElement(dst, "clusterParameters")
	for i, name := range names {
		doc := r.Node.Data().ClusterParameter(name)
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
