package server

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "getParameter", AdminOnly: true, Where: Anywhere, Run: runGetParameter})
	register(&Command{Name: "setParameter", AdminOnly: true, Where: Anywhere, Run: runSetParameter})
	register(&Command{Name: "setFeatureCompatibilityVersion", AdminOnly: true, WriteConcern: true, Run: runSetFCV})
}

func (r *Request) appendParameter(dst []byte, name string) ([]byte, bool) {
	switch name {
	case "featureCompatibilityVersion":
		if r.Node.role == Mongos {
			return dst, false
		}
		at, dst := bson.BeginDocumentElement(dst, name)
		dst = bson.AppendString(dst, "version", r.Node.cfg.Version.Series())
		return bson.EndDocument(dst, at), true
	case "authenticationMechanisms":
		list := []string{account.MechX509, account.ScramSHA1, account.ScramSHA256}
		if r.Node.cfg.OIDC != nil {
			list = append(list, mechOIDC)
		}
		if r.Node.data.accounts.HasAWSKeys() {
			list = append(list, mechAWS)
		}
		if r.Node.cfg.Kerberos != nil {
			list = append(list, mechGSSAPI)
		}
		return bsondoc.AppendStrings(dst, name, list), true
	}
	if point, ok := strings.CutPrefix(name, "failpoint."); ok {
		status, known := r.Node.faults.Status(point)
		if !known {
			return dst, false
		}
		return bson.AppendDocument(dst, name, status), true
	}
	v, ok := r.Node.parameter(name)
	if !ok {
		return dst, false
	}
	return bson.AppendRawValue(dst, name, v), true
}

func runGetParameter(r *Request, dst []byte) ([]byte, error) {
	none := srverr.New(0, "no option found to get")
	arg := r.Arg()
	all := false
	switch s, _ := arg.StringValue(); {
	case s == "*":
		all = true
	case arg.Type == bson.TypeEmbeddedDocument:
		all = bson.Raw(arg.Value).Lookup("allParameters").AsBool()
	}
	found := false
	var ok bool
	if all {
		names := append(bsondoc.SortedKeys(parameters), "featureCompatibilityVersion", "authenticationMechanisms")
		slices.Sort(names)
		for _, name := range names {
			dst, _ = r.appendParameter(dst, name)
		}
		return dst, nil
	}
	first := true
	for k := range r.Body.All() {
		if first {
			first = false
			continue
		}
		if dst, ok = r.appendParameter(dst, k); ok {
			found = true
		}
	}
	if !found {
		return dst, none
	}
	return dst, nil
}

// fixedParameters cannot be changed while the server runs.
var fixedParameters = map[string]bool{"enableTestCommands": true, "localLogicalSessionTimeoutMinutes": true, "logicalSessionRefreshMillis": true,
	"maxBSONDepth": true, "authenticationMechanisms": true, "acceptApiVersion2": true}

func runSetParameter(r *Request, dst []byte) ([]byte, error) {
	first, found := true, false
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		if r.generic(k) {
			continue
		}
		old, ok := r.Node.parameter(k)
		switch {
		case fixedParameters[k]:
			return dst, srverr.New(0, "not allowed to change [%s] at runtime", k)
		case !ok:
			return dst, srverr.New(0, "attempted to set unrecognized parameter [%s], use help:true to see options ", k)
		}
		set := v
		switch old.Type {
		case bson.TypeInt32, bson.TypeInt64:
			n, ok := arg.Number(v)
			if !ok {
				return dst, srverr.New(srverr.BadValue, "Failed setting %s: Unable to coerce value to integral type", k)
			}
			if set = bsondoc.Int64Value(n); old.Type == bson.TypeInt32 {
				set = int32Value(int32(n))
			}
		case bson.TypeBoolean:
			set = bsondoc.BoolValue(v.AsBool())
		}
		if !found {
			dst = bson.AppendRawValue(dst, "was", old)
		}
		found = true
		r.Node.setParameter(string([]byte(k)), set)
		if k == "ttlMonitorSleepSecs" {
			r.Node.armTTL(true)
		}
	}
	if !found {
		return dst, srverr.New(0, "no option found to set, use help:true to see options ")
	}
	return dst, nil
}
