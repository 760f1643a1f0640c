package server

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/srverr"
)

var apiArgs = &args.Table[args.None]{Name: "APIParametersFromClient", Lax: true,
	Fields: map[string]args.Field[args.None]{
		"apiVersion": args.String[args.None](nil), "apiStrict": args.Bool[args.None](nil),
		"apiDeprecationErrors": args.Bool[args.None](nil),
	}}

// checkAPI enforces apiVersion, apiStrict and apiDeprecationErrors, which servers know since 5.0.
func (r *Request) checkAPI() error {
	if !r.Version().AtLeast(5, 0) {
		return nil
	}
	if r.apiVersion.IsZero() && r.apiStrict.IsZero() && r.apiDeprecation.IsZero() {
		if v, _ := r.Node.Parameter("requireApiVersion"); v.AsBool() && !r.Conn.trusted && !r.Cmd.NoAuth &&
			!r.Cmd.Continues && !(r.InTxn() && !r.startTxn) {
			return srverr.New(498870,
				"The apiVersion parameter is required, please configure your MongoClient's API version")
		}
		return nil
	}
	if err := apiArgs.Parse(r, r.Body, nil); err != nil {
		return err
	}
	version, given := r.apiVersion.StringValue()
	strict, deprecation := r.apiStrict.AsBool(), r.apiDeprecation.AsBool()
	in, deprecated := r.Cmd.inAPI(version)
	two, _ := r.Node.Parameter("acceptApiVersion2")
	switch {
	case !given:
		return srverr.New(4886600, "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion")
	case given && version != "1" && !two.AsBool():
		return srverr.New(srverr.APIVersionError, "API version must be \"1\"")
	case given && version != "1" && version != "2":
		return srverr.New(srverr.APIVersionError, "API version must be either \"1\" or \"2\"")
	case strict && !in:
		return srverr.New(
			srverr.APIStrictError, "Provided apiStrict:true, but the command %s is not in API Version %s. Information on supported commands and migrations in API Version %[2]s can be found at https://dochub.mongodb.org/core/manual-versioned-api", r.Cmd.Name, version)
	case deprecation && deprecated:
		return srverr.New(srverr.APIDeprecationError,
			"Provided apiDeprecationErrors:true, but the command %s is deprecated in API Version %s", r.Cmd.Name,
			version)
	}
	return nil
}

// apiText renders the Stable API's parameters of the command, for comparison and for errors.
func (r *Request) apiText() string {
	if r.apiVersion.IsZero() && r.apiStrict.IsZero() && r.apiDeprecation.IsZero() {
		return "{}"
	}
	at, doc := bson.BeginDocument(nil)
	for _, p := range []struct {
		name string
		v    bson.RawValue
	}{{"apiVersion", r.apiVersion}, {"apiStrict", r.apiStrict}, {"apiDeprecationErrors", r.apiDeprecation}} {
		if !p.v.IsZero() {
			doc = bson.AppendRawValue(doc, p.name, p.v)
		}
	}
	return bsontext.Document(bson.EndDocument(doc, at))
}

// SameAPI checks that a command has the Stable API's parameters of the command whose work it
// continues.
func (r *Request) SameAPI(what, before, first string) error {
	if now := r.apiText(); now != before && r.Version().AtLeast(5, 0) {
		return srverr.New(srverr.APIMismatchError, "API parameter mismatch: %s used params %s, the %s used %s", what,
			now, first, before)
	}
	return nil
}

// CheckAPIStages refuses stages that are not in version 1 of the Stable API.
func (r *Request) CheckAPIStages(stages []bson.Raw) error {
	if !r.APIStrict() {
		return nil
	}
	return pipeline.Walk(pipeline.Namespace{DB: r.DB}, stages, func(s pipeline.Stage) error { return s.CheckV1() })
}

// NotStable is the error of a field that is not in the Stable API.
func NotStable(field string) error {
	return srverr.New(srverr.APIStrictError, "BSON field '%s' is not allowed with apiStrict:true.", field)
}

// APIStrict reports whether the client set apiStrict: the server must refuse what is not in the
// Stable API.
func (r *Request) APIStrict() bool { return !r.apiVersion.IsZero() && r.apiStrict.AsBool() }
