package admin

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "getParameter", AdminOnly: true, Needs: server.OnCluster("getParameter"), DataLake: true,
		Where: server.Anywhere, Run: runGetParameter,
	})
	server.Register(&server.Command{
		Name: "setParameter", AdminOnly: true, Needs: server.OnCluster("setParameter"), Where: server.Anywhere,
		Run: runSetParameter,
	})
	server.Register(&server.Command{
		Name: "setFeatureCompatibilityVersion", AdminOnly: true,
		Needs: server.OnCluster("setFeatureCompatibilityVersion"), WriteConcern: true,
		Run: runSetFCV,
	})
}

func appendParameter(r *server.Request, dst []byte, name string) ([]byte, bool) {
	switch name {
	case "featureCompatibilityVersion":
		if r.Routing != nil {
			return dst, false
		}
		at, dst := bson.BeginDocumentElement(dst, name)
		dst = bson.AppendString(dst, "version", r.Node.Compatibility())
		return bson.EndDocument(dst, at), true
	case "authSchemaVersion":
		return bson.AppendInt32(dst, name, server.AuthSchemaVersion), true
	case "authenticationMechanisms":
		list := []string{account.MechX509, account.ScramSHA1, account.ScramSHA256}
		if r.Node.Config().OIDC != nil {
			list = append(list, account.MechOIDC)
		}
		if r.Node.Data().Accounts().HasAWSKeys() {
			list = append(list, account.MechAWS)
		}
		if r.Node.Config().Kerberos != nil {
			list = append(list, account.MechGSSAPI)
		}
		return bsondoc.AppendStrings(dst, name, list), true
	}
	if point, ok := strings.CutPrefix(name, "failpoint."); ok {
		status, known := r.Node.Faults().Status(point)
		if !known {
			return dst, false
		}
		return bson.AppendDocument(dst, name, status), true
	}
	v, ok := r.Node.Parameter(name)
	if !ok {
		return dst, false
	}
	return bson.AppendRawValue(dst, name, v), true
}

// shown is how getParameter shows parameters, if its first argument is a document.
type shown struct {
	all, details bool
	at           string // "startup" or "runtime": of all, those that may be set then
}

var shownArgs = &args.Table[shown]{Name: "getParameter", Fields: map[string]args.Field[shown]{
	"allParameters": args.SafeBool(func(s *shown) *bool { return &s.all }),
	"showDetails":   args.SafeBool(func(s *shown) *bool { return &s.details }),
	"setAt":         args.String(func(s *shown) *string { return &s.at }).Gated(),
}}

// has reports whether a parameter is among all that are to be shown.
func (s *shown) has(name string) bool {
	startup, runtime := settable(name)
	return s.at == "" || s.at == "startup" && startup || s.at == "runtime" && runtime
}

// settable reports when a parameter may be set.
func settable(name string) (startup, runtime bool) {
	state := name == "featureCompatibilityVersion" || name == "authSchemaVersion" // they belong to the data
	return !state, !state && !fixedParameters[name]
}

// append appends a parameter, as a value or with what may be done with it.
func (s *shown) append(r *server.Request, dst []byte, name string) ([]byte, bool) {
	if !s.details {
		return appendParameter(r, dst, name)
	}
	at, out := bson.BeginDocumentElement(dst, name)
	start := len(out)
	out, ok := appendParameter(r, out, name)
	if !ok {
		return dst, false
	}
	_, v := bsondoc.FirstElement(bson.Raw(bson.EndDocument(append([]byte{0, 0, 0, 0}, out[start:]...), 0)))
	out = bson.AppendRawValue(out[:start], "value", v)
	startup, runtime := settable(name)
	out = bson.AppendBool(out, "settableAtRuntime", runtime)
	out = bson.AppendBool(out, "settableAtStartup", startup)
	return bson.EndDocument(out, at), true
}

func runGetParameter(r *server.Request, dst []byte) ([]byte, error) {
	none := srverr.New(refusal(r, srverr.InvalidOptions), "no option found to get")
	arg := r.Arg()
	var show shown
	switch s, _ := arg.StringValue(); {
	case s == "*":
		show.all = true
	case arg.Type == bson.TypeEmbeddedDocument && r.Version().AtLeast(5, 0):
		if err := shownArgs.Parse(r, arg.Value, &show); err != nil {
			return dst, err
		}
		if at := bson.Raw(arg.Value).Lookup("setAt"); at.Type == bson.TypeString && show.at != "startup" &&
			show.at != "runtime" {
			return dst, srverr.New(srverr.BadValue,
				"Enumeration value '%s' for field 'getParameter.setAt' is not a valid value.", show.at)
		}
	case arg.Type == bson.TypeEmbeddedDocument:
		show.all = bson.Raw(arg.Value).Lookup("allParameters").AsBool()
	}
	found := false
	var ok bool
	if show.all {
		names := append(bsondoc.SortedKeys(server.Parameters), "featureCompatibilityVersion",
			"authenticationMechanisms", "authSchemaVersion", server.LogVerbosity)
		slices.Sort(names)
		for _, name := range names {
			if show.has(name) {
				dst, _ = show.append(r, dst, name)
			}
		}
		return dst, nil
	}
	first := true
	for k := range r.Body.All() {
		if first {
			first = false
			continue
		}
		if dst, ok = show.append(r, dst, k); ok {
			found = true
		}
	}
	if !found {
		return dst, none
	}
	return dst, nil
}

// refusal is the code of an error of these commands, which have none before version 5.0.
func refusal(r *server.Request, code int32) int32 {
	if !r.Node.Version().AtLeast(5, 0) {
		return 0
	}
	return code
}

// fixedParameters cannot be changed while the server runs.
var fixedParameters = map[string]bool{"enableTestCommands": true, "localLogicalSessionTimeoutMinutes": true,
	"logicalSessionRefreshMillis": true,
	"maxBSONDepth":                true, "authenticationMechanisms": true, "acceptApiVersion2": true,
	"KeysRotationIntervalSec": true, "featureCompatibilityVersion": true}

func runSetParameter(r *server.Request, dst []byte) ([]byte, error) {
	first, found := true, false
	// Since 8.1 nothing is set if one of several parameters is wrong.
	var later []func()
	do := func(set func()) { set() }
	parsed := r.Version().AllParsed()
	if parsed {
		do = func(set func()) { later = append(later, set) }
	}
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		if r.Generic(k) {
			continue
		}
		old, ok := r.Node.Parameter(k)
		switch {
		case fixedParameters[k]:
			return dst, srverr.New(refusal(r, srverr.IllegalOperation), "not allowed to change [%s] at runtime", k)
		case !ok:
			return dst, srverr.New(refusal(r, srverr.InvalidOptions),
				"attempted to set unrecognized parameter [%s], use help:true to see options ", k)
		}
		set := v
		if k == server.LogVerbosity {
			if err := r.Node.SetLogVerbosity(v); err != nil {
				return dst, err
			}
			if !found {
				dst = bson.AppendRawValue(dst, "was", old)
			}
			found = true
			continue
		}
		switch old.Type {
		case bson.TypeInt32, bson.TypeInt64:
			n, ok := args.NumberOf(v)
			if v.Type == bson.TypeBoolean && parsed {
				if ok = true; v.AsBool() {
					n = 1
				}
			}
			if parsed && (old.Type == bson.TypeInt32 && n != int64(int32(n)) || k == "logLevel" && n < 0) {
				return dst, srverr.New(srverr.BadValue, "Invalid value for parameter %s: %d is out of its bounds", k, n)
			}
			if !ok {
				return dst, srverr.New(srverr.BadValue, "Failed setting %s: Unable to coerce value to integral type", k)
			}
			if set = bsondoc.Int64Value(n); old.Type == bson.TypeInt32 {
				set = bsondoc.Int32Value(int32(n))
			}
		case bson.TypeBoolean:
			set = bsondoc.BoolValue(v.AsBool())
		case bson.TypeString:
			if parsed {
				if err := server.CheckText(k, v); err != nil {
					return dst, err
				}
			}
		case bson.TypeDouble:
			if !v.IsNumber() {
				return dst, srverr.New(srverr.BadValue, "Failed setting %s: Unable to coerce value to double", k)
			}
		}
		if !r.Node.CheckParameter(k, set) {
			return dst, srverr.New(srverr.BadValue, "Invalid value for parameter %s: %s is out of its bounds", k, set)
		}
		if !found {
			dst = bson.AppendRawValue(dst, "was", old)
		}
		found = true
		name := strings.Clone(k)
		do(func() {
			r.Node.StoreParameter(name, set)
			if name == "ttlMonitorSleepSecs" {
				r.Node.ArmTTL(true)
			}
		})
	}
	if !found {
		return dst, srverr.New(refusal(r, srverr.InvalidOptions),
			"no option found to set, use help:true to see options ")
	}
	for _, set := range later {
		set()
	}
	return dst, nil
}
