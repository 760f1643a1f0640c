package server

import (
	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// apiV1 are the commands of the Stable API's version 1 (specification: stable API).
var apiV1 = map[string]bool{
	"abortTransaction": true, "aggregate": true, "authenticate": true, "bulkWrite": true, "collMod": true,
	"commitTransaction": true, "count": true, "create": true, "createIndexes": true, "delete": true, "drop": true,
	"dropDatabase": true, "dropIndexes": true, "endSessions": true, "explain": true, "find": true,
	"findAndModify": true, "getMore": true, "hello": true, "insert": true, "killCursors": true, "listCollections": true,
	"listDatabases": true, "listIndexes": true, "ping": true, "refreshSessions": true, "saslContinue": true,
	"saslStart": true, "update": true, "createSearchIndexes": true, "dropSearchIndex": true, "updateSearchIndex": true,
	"isMaster": true, "testVersion2": false, "testDeprecation": true,
}

// checkAPI enforces apiVersion, apiStrict and apiDeprecationErrors, which servers know since 5.0.
func (r *Request) checkAPI() error {
	if !r.Node.cfg.Version.AtLeast(5, 0) {
		return nil
	}
	flag := func(name string, v bson.RawValue) (bool, error) {
		if v.IsZero() {
			return false, nil
		}
		b, ok := v.Boolean()
		if !ok {
			return false, wrongType("APIParametersFromClient."+name, v.Type, "bool")
		}
		if r.apiVersion.IsZero() {
			return false, srverr.New(srverr.APIVersionError, "Provided %s without passing apiVersion", name)
		}
		return b, nil
	}
	strict, err := flag("apiStrict", r.apiStrict)
	if err != nil {
		return err
	}
	deprecation, err := flag("apiDeprecationErrors", r.apiDeprecation)
	if err != nil {
		return err
	}
	if r.apiVersion.IsZero() {
		if v, _ := r.Node.parameter("requireApiVersion"); v.AsBool() && !r.Cmd.NoAuth && r.Cmd.Name != "getMore" && !(r.InTxn() && !r.startTxn) {
			return srverr.New(498870, "The apiVersion parameter is required, please configure your MongoClient's API version")
		}
		return nil
	}
	version, ok := r.apiVersion.StringValue()
	if !ok {
		return wrongType("APIParametersFromClient.apiVersion", r.apiVersion.Type, "string")
	}
	if version != "1" {
		return srverr.New(srverr.APIVersionError, "API version must be \"1\"")
	}
	if strict && !apiV1[r.Cmd.Name] {
		return srverr.New(srverr.APIStrictError, "Provided apiStrict:true, but the command %s is not in API Version 1. Information on supported commands and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api", r.Cmd.Name)
	}
	if deprecation && r.Cmd.Name == "testDeprecation" {
		return srverr.New(srverr.APIDeprecationError, "Provided apiDeprecationErrors:true, but the command %s is deprecated in API Version 1", r.Cmd.Name)
	}
	return nil
}

// stagesNotV1 are the stages that are no part of version 1.
var stagesNotV1 = map[string]bool{
	"$currentOp": true, "$indexStats": true, "$listLocalSessions": true, "$listSessions": true, "$planCacheStats": true,
	"$listSearchIndexes": true, "$search": true, "$searchMeta": true, "$vectorSearch": true,
}

// checkAPIStages refuses stages that are not in version 1 of the Stable API.
func (r *Request) checkAPIStages(stages []bson.Raw) error {
	if !r.APIStrict() {
		return nil
	}
	for _, stage := range stages {
		for name, spec := range stage.All() {
			doc, _ := spec.Document()
			if stagesNotV1[name] {
				return srverr.New(srverr.APIStrictError, "stage %s is not allowed with 'apiStrict: true' in API Version 1", name)
			}
			for key := range doc.All() {
				if name == "$collStats" && key != "count" {
					return srverr.New(srverr.APIStrictError, "only the 'count' option to $collStats is supported in API Version 1")
				}
			}
		}
	}
	return nil
}

// APIStrict reports whether the client asked to be refused anything that is not in the Stable API.
func (r *Request) APIStrict() bool { return !r.apiVersion.IsZero() && r.apiStrict.AsBool() }
