package mongotest

import "allium/bson"

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
		start, dst := bson.BeginDocument(nil)
		dst = bson.AppendInt32(dst, "_id", a-1)
		dst = bson.AppendInt32(dst, "a", a)
		dst = bson.AppendInt32(dst, "b", a+1)
		dst = bson.AppendInt32(dst, "c", a+2)
		docs = append(docs, bson.EndDocument(dst, start))
	}
	return docs
}
