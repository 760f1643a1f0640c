package admin

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
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
	parsed := r.Version().AllParsed()
	if parsed && r.Body.Lookup("writeConcern").Type != 0 {
		return dst, srverr.New(srverr.InvalidOptions, "Command setClusterParameter does not support writeConcern")
	}
	spec, ok := r.Arg().Document()
	if !ok {
		if parsed && args.IsNull(r.Arg()) {
			return dst, args.MissingField("setClusterParameter.setClusterParameter")
		}
		return dst, args.WrongType("setClusterParameter.setClusterParameter", r.Arg().Type, "object")
	}
	if parsed {
		n := 0
		for range spec.All() {
			n++
		}
		switch {
		case n > 1:
			return dst, srverr.New(srverr.InvalidOptions, "setClusterParameter sets one parameter at a time")
		case n == 0:
			return dst, srverr.New(srverr.NoSuchKey, "Unknown server parameter: ")
		}
	}
	for name, v := range spec.All() {
		if clusterParameter(r, name) == nil {
			return dst, srverr.New(srverr.NoSuchKey, "Unknown server parameter: %s", name)
		}
		doc, ok := v.Document()
		if !ok {
			if parsed {
				return dst, srverr.New(srverr.BadValue, "The value of '%s' must be an object", name)
			}
			return dst, args.WrongType("setClusterParameter."+name, v.Type, "object")
		}
		var err error
		if parsed {
			if err = checkClusterParameter(r, name, doc); err == nil {
				doc = inLongs(withDefaults(doc, server.ClusterParameters[name]))
			}
		} else {
			err = checkImagesAge(doc.Lookup("preAndPostImages", "expireAfterSeconds"))
		}
		if err != nil {
			return dst, err
		}
		r.Node.Data().SetClusterParameter(name, doc)
	}
	return dst, nil
}

// inLongs returns the document with its numbers as long integers, as a definition keeps them.
func inLongs(doc bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range doc.All() {
			if sub, ok := v.Document(); ok {
				v = bsondoc.DocumentValue(inLongs(sub))
			} else if n, isNumber := args.NumberOf(v); isNumber {
				v = bsondoc.Int64Value(n)
			}
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	})
}

// withDefaults returns the document with the defaults in place of what is null or missing in it.
func withDefaults(doc, defaults bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range defaults.All() {
			if given := doc.Lookup(k); given.Type != 0 && !args.IsNull(given) {
				v = given
			}
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	})
}

// clusterParameter returns the value of a parameter of the deployment, nil if its version has none
// of this name.
func clusterParameter(r *server.Request, name string) bson.Raw {
	if !r.Node.Version().Has(release.Parameter, name) {
		return nil
	}
	return r.Node.Data().ClusterParameter(name)
}

// checkImagesAge checks how long pre-images are kept.
func checkImagesAge(after bson.RawValue) error {
	if s, isText := after.StringValue(); isText && s != "off" {
		return srverr.New(srverr.BadValue, "Non-numeric value of 'expireAfterSeconds' should be 'off'")
	}
	if n, exact := after.AsInt64(); after.IsNumber() && (!exact || n <= 0) {
		return srverr.New(srverr.BadValue, "Numeric value of 'expireAfterSeconds' should be positive")
	}
	return nil
}

var (
	streamsArgs = &args.Table[args.None]{Name: "changeStreams", Fields: map[string]args.Field[args.None]{
		"expireAfterSeconds": args.Number[args.None](nil),
	}}
	pauseArgs = &args.Table[args.None]{Name: "pauseMigrationsDuringMultiUpdates",
		Fields: map[string]args.Field[args.None]{"enabled": args.Bool[args.None](nil)}}
	maxTimeArgs = &args.Table[args.None]{Name: "defaultMaxTimeMS",
		Fields: map[string]args.Field[args.None]{"readOperations": args.Number[args.None](nil).AtLeast(0)}}
	substringArgs = &args.Table[args.None]{Name: "fleDisableSubstringPreviewParameterLimits",
		Fields: map[string]args.Field[args.None]{"shouldOverride": args.Bool[args.None](nil)}}
)

// checkClusterParameter checks a value where each parameter has a definition.
func checkClusterParameter(r *server.Request, name string, doc bson.Raw) error {
	for k := range doc.All() {
		if strings.HasPrefix(k, "$") {
			return srverr.New(srverr.DollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not allowed",
				k, name)
		}
	}
	switch name {
	case "changeStreams":
		if err := streamsArgs.Parse(r, doc, &args.None{}); err != nil {
			return err
		}
		if v := doc.Lookup("expireAfterSeconds"); v.IsNumber() {
			if n, _ := args.NumberOf(v); n <= 0 {
				return srverr.New(srverr.BadValue, "BSON field 'expireAfterSeconds' value must be > 0, actual value '%d'", n)
			}
		}
		return nil
	case "pauseMigrationsDuringMultiUpdates":
		return pauseArgs.Parse(r, doc, &args.None{})
	case "defaultMaxTimeMS":
		return maxTimeArgs.Parse(r, doc, &args.None{})
	case "fleDisableSubstringPreviewParameterLimits":
		return substringArgs.Parse(r, doc, &args.None{})
	}
	images, ok := doc.Lookup("preAndPostImages").Document()
	if !ok {
		return srverr.New(srverr.BadValue, "'%s.preAndPostImages' must be an object", name)
	}
	for k := range doc.All() {
		if k != "preAndPostImages" {
			return srverr.New(srverr.BadValue, "'%s.%s' is an unknown field", name, k)
		}
	}
	after := images.Lookup("expireAfterSeconds")
	if after.Type != bson.TypeString && !after.IsNumber() {
		return srverr.New(srverr.BadValue, "'expireAfterSeconds' must be 'off' or a number, not of type %s",
			bsontext.TypeName(after.Type))
	}
	return checkImagesAge(after)
}

func runGetClusterParameter(r *server.Request, dst []byte) ([]byte, error) {
	var names []string
	switch v := r.Arg(); v.Type {
	case bson.TypeString:
		if s, _ := v.StringValue(); s == "*" {
			names = slices.DeleteFunc(bsondoc.SortedKeys(server.ClusterParameters), func(name string) bool {
				return clusterParameter(r, name) == nil
			})
		} else {
			names = []string{s}
		}
	case bson.TypeArray:
		for e := range bson.Raw(v.Value).Values() {
			if e.Type != bson.TypeString && r.Version().AllParsed() {
				return dst, args.WrongType("getClusterParameter.getClusterParameter", e.Type, "string")
			}
			names = append(names, bsondoc.MustString(e))
		}
		if len(names) == 0 && r.Version().AllParsed() {
			return dst, srverr.New(srverr.BadValue, "Must supply at least one cluster server parameter name to getClusterParameter")
		}
	default:
		return dst, srverr.New(srverr.TypeMismatch,
			"BSON field 'getClusterParameter.getClusterParameter' is the wrong type '%s', expected types '[string, array]'", bsontext.TypeName(v.Type))
	}
	at, dst := bson.BeginArrayElement(dst, "clusterParameters")
	for i, name := range names {
		doc := clusterParameter(r, name)
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
