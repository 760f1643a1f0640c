package server

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// What comes along with every command: the read preference, the cluster time, and what only the
// nodes of a cluster say to each other, of which just the form is checked.

// internalArgs are the arguments that only nodes of a cluster send.
var internalArgs = map[string]func(r *Request, v bson.RawValue) error{
	"shardVersion": func(_ *Request, v bson.RawValue) error {
		if v.Type != bson.TypeArray {
			return srverr.New(srverr.TypeMismatch, "Invalid type %s for shardVersion element. Expected an array",
				bsontext.TypeName(v.Type))
		}
		return nil
	},
	"$audit": func(r *Request, v bson.RawValue) error {
		if v.Type != bson.TypeEmbeddedDocument {
			if !r.Version().AtLeast(5, 0) {
				return nil
			}
			return args.WrongType("$audit", v.Type, "object")
		}
		return auditArgs.Parse(r, v.Value, nil)
	},
	"$client": func(_ *Request, v bson.RawValue) error {
		if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
			return srverr.New(srverr.TypeMismatch, "The client metadata document must be a document")
		}
		_, err := checkMetadata(v.Value)
		return err
	},
	"$configServerState": func(_ *Request, v bson.RawValue) error {
		if v.Type != bson.TypeEmbeddedDocument {
			return srverr.New(srverr.TypeMismatch,
				// sic
				"ConfigServerMetadata element has incorrect type: expectedobject but got %s", bsontext.TypeName(v.Type))
		}
		return CheckOpTime(v.Value, "opTime")
	},
	"tracking_info": func(_ *Request, v bson.RawValue) error {
		if v.Type != bson.TypeEmbeddedDocument {
			return srverr.New(srverr.TypeMismatch,
				// sic
				"TrackingMetadata element has incorrect type: expectedobject but got %s", bsontext.TypeName(v.Type))
		}
		return nil
	},
}

var auditArgs = &args.Table[args.None]{Name: "$audit", Required: []string{"$impersonatedUsers", "$impersonatedRoles"},
	Fields: map[string]args.Field[args.None]{
		"$impersonatedUsers": args.Objects[args.None](nil), "$impersonatedRoles": args.Objects[args.None](nil),
	}}

// checkInternal checks the form of the internal arguments.
func (r *Request) checkInternal() error {
	for k, v := range r.Body.All() {
		if check := internalArgs[k]; check != nil && r.Generic(k) {
			if err := check(r, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckOpTime checks a field that must be an optime: {ts, t}.
func CheckOpTime(doc bson.Raw, field string) error {
	at, err := args.ExtractObject(doc, field)
	ts, t := at.Lookup("ts"), at.Lookup("t")
	switch {
	case err != nil:
		return err
	case at == nil:
		return args.Missing(field)
	case ts.IsZero():
		return args.Missing("ts")
	case ts.Type != bson.TypeTimestamp:
		return args.NotA("ts", "timestamp", ts)
	case t.IsZero():
		return args.Missing("t")
	case !t.IsNumber():
		return srverr.New(srverr.TypeMismatch, "Expected field \"t\" to have numeric type, but found %s",
			bsontext.TypeName(t.Type))
	}
	return nil
}

// metadata reads what clients and the other nodes of a cluster send along with every command.
func (r *Request) metadata() error {
	if !r.readPreference.IsZero() {
		ok, err := parseReadPreference(r.readPreference)
		if err != nil {
			return err
		}
		if r.optedIn = ok; ok && r.Routing != nil {
			r.preference = readPreferenceOf(r.readPreference.Value)
		}
	}
	if r.internal {
		if err := r.checkInternal(); err != nil {
			return err
		}
	}
	if r.clusterTime.IsZero() {
		return nil
	}
	return r.gossip()
}

// gossip takes over the client's $clusterTime.
func (r *Request) gossip() error {
	v := r.clusterTime
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return srverr.New(10065, "invalid parameter: expected an object ($clusterTime)")
	}
	missing := func(name string) error {
		return srverr.New(srverr.NoSuchKey, "Missing expected field \"%s\"", name)
	}
	wrong := func(name, want string, v bson.RawValue) error {
		return srverr.New(srverr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", name, want,
			bsontext.TypeName(v.Type))
	}
	doc := bson.Raw(v.Value)
	ct := doc.Lookup("clusterTime")
	ts, ok := ct.Timestamp()
	if ct.IsZero() {
		return missing("clusterTime")
	}
	if !ok {
		return wrong("clusterTime", "timestamp", ct)
	}
	sig := doc.Lookup("signature")
	if sig.IsZero() {
		return missing("signature")
	}
	if sig.Type != bson.TypeEmbeddedDocument {
		return wrong("signature", "object", sig)
	}
	hash, key := bson.Raw(sig.Value).Lookup("hash"), bson.Raw(sig.Value).Lookup("keyId")
	switch {
	case hash.IsZero():
		return missing("hash")
	case hash.Type != bson.TypeBinary:
		return wrong("hash", "binData", hash)
	case key.IsZero():
		return missing("keyId")
	case !key.IsNumber():
		return srverr.New(srverr.TypeMismatch, "Expected field \"keyId\" to have numeric type, but found %s",
			bsontext.TypeName(key.Type))
	case len(hash.Value) != 25:
		return srverr.New(srverr.UnsupportedFormat, "Unsupported SHA1Block hash length: %d", len(hash.Value)-5)
	}
	if r.Node.role == Standalone {
		return nil
	}
	limit := r.Node.data.Clock.Now().Unix() + r.Node.IntParameter("maxAcceptableLogicalClockDriftSecs")
	if int64(ts.T) > limit {
		return srverr.New(srverr.ClusterTimeFailsRateLimiter,
			"New cluster time, %d, is too far from this node's wall clock time, %d.", ts.T,
			r.Node.data.Clock.Now().Unix())
	}
	r.Node.data.Clock.Advance(ts)
	return nil
}

// parseReadPreference reports whether the read preference lets a secondary answer.
func parseReadPreference(v bson.RawValue) (secondary bool, err error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return false, srverr.New(srverr.TypeMismatch, "$readPreference has incorrect type: expected object but got %s",
			bsontext.TypeName(v.Type))
	}
	doc := bson.Raw(v.Value)
	m := doc.Lookup("mode")
	if m.IsZero() {
		return false, srverr.New(srverr.NoSuchKey, "Missing expected field \"mode\"")
	}
	mode, ok := m.StringValue()
	if !ok {
		return false, srverr.New(srverr.TypeMismatch, "\"mode\" had the wrong type. Expected string, found %s",
			bsontext.TypeName(m.Type))
	}
	switch mode {
	case "primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest":
	default:
		return false, srverr.New(
			srverr.BadValue, "Could not parse $readPreference mode '%s'. Only the modes 'primary', 'primaryPreferred', 'secondary', 'secondaryPreferred', and 'nearest' are supported. :: caused by :: Enumeration value '%s' for field 'mode' is not a valid value.", mode, mode)
	}
	return mode != "primary", checkReadPreference(doc, mode)
}

// minMaxStaleness is the least maxStalenessSeconds (specification: max staleness).
const minMaxStaleness = 90

// checkReadPreference checks what comes with the mode.
func checkReadPreference(doc bson.Raw, mode string) error {
	bad := func(text string) error { return srverr.New(srverr.BadValue, "%s", text) }
	if tags := doc.Lookup("tags"); !tags.IsZero() {
		if tags.Type != bson.TypeArray {
			return srverr.New(srverr.TypeMismatch, "\"tags\" had the wrong type. Expected array, found %s",
				bsontext.TypeName(tags.Type))
		}
		for t := range bson.Raw(tags.Value).Values() {
			if mode == "primary" && !bson.Raw(t.Value).IsEmpty() {
				return bad("Only empty tags are allowed with primary read preference")
			}
		}
	}
	if h := doc.Lookup("hedge"); !h.IsZero() {
		if h.Type != bson.TypeEmbeddedDocument && h.Type != bson.TypeArray {
			return srverr.New(srverr.UnknownError, "assertion src/mongo/bson/bsonelement.cpp:594")
		}
		if on := bson.Raw(h.Value).Lookup("enabled"); !on.IsZero() && on.Type != bson.TypeBoolean &&
			on.Type != bson.TypeNull {
			return args.WrongType("hedge.enabled", on.Type, "bool")
		}
	}
	v := doc.Lookup("maxStalenessSeconds")
	if v.IsZero() {
		return nil
	}
	if !v.IsNumber() {
		return srverr.New(
			srverr.TypeMismatch, "Expected field \"maxStalenessSeconds\" to have numeric type, but found %s",
			bsontext.TypeName(v.Type))
	}
	n, exact := v.AsInt64()
	switch {
	case !exact:
		return srverr.New(
			srverr.BadValue, "Expected field \"maxStalenessSeconds\" to have a value exactly representable as a 64-bit integer, but found %s", bsontext.Element("maxStalenessSeconds", v))
	case n < 0:
		return bad("maxStalenessSeconds must be a non-negative integer")
	case n > 0 && n < minMaxStaleness:
		return srverr.New(srverr.MaxStalenessOutOfRange, "maxStalenessSeconds value can not be less than %d",
			minMaxStaleness)
	case n > 0 && mode == "primary":
		return bad("maxStalenessSeconds can not be set for the primary mode")
	}
	return nil
}
