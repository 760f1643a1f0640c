package mongotest

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

// lakeUsers are the accounts of a data lake.
var lakeUsers = []User{
	{Name: "mhuser", Password: "pencil", Roles: []string{"readAnyDatabase"}},
	{Name: "sha1", Password: "pencil", Roles: []string{"readAnyDatabase"}, Mechanisms: []string{"SCRAM-SHA-1"}},
	{Name: "sha256", Password: "pencil", Roles: []string{"readAnyDatabase"}, Mechanisms: []string{"SCRAM-SHA-256"}},
}

// lakeDocuments returns the documents of a data lake.
func lakeDocuments() []bson.Raw {
	var docs []bson.Raw
	for a := int32(1); a <= 15; a++ {
		docs = append(docs, bsondoc.Of("_id", a-1, "a", a, "b", a+1, "c", a+2))
	}
	return docs
}
